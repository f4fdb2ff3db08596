from __future__ import annotations

import io
import os
import signal
import threading

import pytest
from rich.console import Console

from likewise.runs import progress as progress_module
from likewise.runs.progress import Progress, Stopped, orderly_stop, seconds_each


def told(terminal: bool = False) -> tuple[Progress, io.StringIO]:
    out = io.StringIO()
    return Progress(console=Console(file=out, force_terminal=terminal, width=100)), out


def test_a_line_at_intervals_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "EVERY_SECONDS", 0.0)
    progress, out = told()
    with progress.bar("encoding", 4000, done=1000) as bar:
        bar.advance(1000)
        bar.update(done=3000, note="loss 0.5")
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("encoding: 2,000 of 4,000 (50%), about 0 min left")
    assert lines[1].endswith(", loss 0.5")
    with progress.bar("indexing", 2) as bar:
        bar.advance(3)  # the total was an estimate
    assert out.getvalue().splitlines()[2:] == ["indexing: 3"]
    lines.append("indexing: 3")
    monkeypatch.setattr(progress_module, "EVERY_SECONDS", 60.0)
    with progress.bar("encoding", 4) as bar:
        bar.advance()
    assert out.getvalue().splitlines() == lines


def test_a_bar_on_a_terminal_with_one_inside() -> None:
    progress, out = told(terminal=True)
    with progress.bar("outer", 2, stays=True) as outer:
        with progress.bar("inner", 3_000_000, unit="bytes") as inner:
            inner.advance(3_000_000)
        outer.advance(2)
    assert "2/2" in out.getvalue()
    assert progress.view is None


def test_quiet_says_nothing() -> None:
    progress = Progress(quiet=True, console=Console(file=(out := io.StringIO())))
    progress.tell("a line")
    with progress.bar("encoding", 2) as bar:
        bar.advance(2)
    assert bar.done == 2
    assert out.getvalue() == ""


def test_text_is_not_read_as_markup() -> None:
    progress, out = told()
    progress.tell("the token [MASK] [/b]")
    assert out.getvalue() == "the token [MASK] [/b]\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_interrupts(number: int, says) -> None:
    progress, out = told()
    before = signal.getsignal(number)
    with orderly_stop(progress) as stop:
        stop.check()
        os.kill(os.getpid(), number)
        assert stop.requested
        with says(Stopped):
            stop.check("after row 3")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert "Stopping" in out.getvalue()


def test_a_stop_of_a_part_stops_the_whole() -> None:
    progress, out = told()
    with orderly_stop(progress) as whole:
        with orderly_stop(Progress(quiet=True)) as part:
            os.kill(os.getpid(), signal.SIGINT)
            assert part.requested
        assert whole.requested
        with orderly_stop(Progress(quiet=True)) as next_part:
            assert not next_part.requested
    assert "Stopping" in out.getvalue()


def test_outside_the_main_thread_nothing_is_caught() -> None:
    found = []

    def work() -> None:
        with orderly_stop(Progress(quiet=True)) as stop:
            found.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def measured(monkeypatch, each, count, fixed=0.0, first=0.0):
    """Measure work that takes `each` seconds an item, and return the figure and the sizes of the batches."""
    clock, sizes = Clock(), []
    monkeypatch.setattr(progress_module, "time", clock)

    def work(items):
        assert len(set(items)) == len(items)
        clock.now += fixed + each * len(items) + (0 if sizes else first)
        sizes.append(len(items))

    return seconds_each(work, range(count)), sizes


def test_the_first_batch_does_not_count(monkeypatch):
    found, sizes = measured(monkeypatch, each=0.25, count=100, first=60.0)
    assert (found, sizes) == (0.25, [4, 4, 16])


def test_a_fast_model_is_measured_on_more(monkeypatch):
    found, sizes = measured(monkeypatch, each=0.002, count=1000)
    assert abs(found - 0.002) < 1e-9
    assert sizes == [4, 4, 16, 64, 256]


def test_no_more_is_measured_than_there_is(monkeypatch):
    assert measured(monkeypatch, each=0.001, count=10)[1] == [4, 4, 10]
    assert measured(monkeypatch, each=0.001, count=1)[1] == [1, 1, 1]


def test_calls_that_are_slow_at_first_do_not_count(monkeypatch):
    clock, calls = Clock(), []
    monkeypatch.setattr(progress_module, "time", clock)

    def work(items):
        calls.append(len(items))
        clock.now += 0.01 * len(items) + (4.0 if len(calls) < 5 else 0.0)

    assert abs(seconds_each(work, range(64)) - 0.01) < 1e-9
    assert calls == [4, 4, 16, 64, 64, 64]


def test_the_items_are_spread_over_all(monkeypatch):
    seen = []
    monkeypatch.setattr(progress_module, "_LEAST", 0.0)
    seconds_each(seen.append, [*range(100)])
    assert seen[0] == [0, 25, 50, 75]
