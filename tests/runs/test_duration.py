from likewise.runs import duration
from likewise.runs.duration import seconds_each


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def measured(monkeypatch, each, count, fixed=0.0, first=0.0):
    """Measure work that takes `each` seconds an item, and return the figure and the sizes of the batches."""
    clock, sizes = Clock(), []
    monkeypatch.setattr(duration, "time", clock)

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
    monkeypatch.setattr(duration, "time", clock)

    def work(items):
        calls.append(len(items))
        clock.now += 0.01 * len(items) + (4.0 if len(calls) < 5 else 0.0)

    assert abs(seconds_each(work, range(64)) - 0.01) < 1e-9
    assert calls == [4, 4, 16, 64, 64, 64]


def test_the_items_are_spread_over_all(monkeypatch):
    seen = []
    monkeypatch.setattr(duration, "_LEAST", 0.0)
    seconds_each(seen.append, [*range(100)])
    assert seen[0] == [0, 25, 50, 75]
