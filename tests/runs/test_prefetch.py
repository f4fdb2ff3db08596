import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from likewise.runs.prefetch import finished_behind, read_ahead, spread_over


def test_the_next_item_is_read_while_one_is_worked_on():
    second = threading.Event()

    def items():
        yield 1
        second.set()
        yield 2

    found = read_ahead(items())
    assert next(found) == 1
    assert second.wait(10), "the second item is not read before it is asked for"
    assert list(found) == [2]


def test_an_error_of_the_reader_comes_after_what_it_has_read():
    def items():
        yield 1
        raise ValueError("line 2")

    found = read_ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="line 2"):
        next(found)


def test_a_piece_is_finished_while_the_next_is_begun_and_one_after_the_other():
    begun, finished = [threading.Event() for _ in range(3)], []

    def finish(number):
        if number < 2:
            assert begun[number + 1].wait(10), "the next piece waits for this one"
        finished.append(number)
        return number

    def pieces():
        for number in range(3):
            begun[number].set()
            yield lambda number=number: finish(number)

    assert list(finished_behind(pieces())) == finished == [0, 1, 2]


def test_who_stops_leaves_the_piece_that_was_begun_last():
    finished: list[int] = []
    found = finished_behind(lambda number=number: finished.append(number) for number in range(5))
    next(found)
    found.close()
    assert finished == [0]


def test_results_are_in_order_and_only_so_many_wait():
    running, most, lock = 0, 0, threading.Lock()

    def run(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        return number

    with ThreadPoolExecutor(4) as pool:
        taken = []
        for found in spread_over(pool, 2)(run, range(20)):
            with lock:
                running -= 1
            taken.append(found)
    assert taken == list(range(20))
    assert most <= 3
