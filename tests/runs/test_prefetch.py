import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from likewise.runs.prefetch import in_order
from likewise.searching.index.table_update import read_ahead


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
        for found in in_order((pool.submit(run, number).result for number in range(20)), 2):
            with lock:
                running -= 1
            taken.append(found)
    assert taken == list(range(20))
    assert most <= 3
