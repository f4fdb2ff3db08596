import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from likewise.searching.serve.requests import RequestError
from likewise.searching.serve.shared_batches import Batcher


class Numbers:
    """A model whose items are lists of ones, and whose vectors are their lengths."""

    budget = 10

    def __init__(self, pool, workers):
        self.pool, self.workers = pool, workers
        self.batches, self.free, self.begun = [], threading.Event(), threading.Event()
        self.free.set()

    def tokens(self, item):
        return len(item)

    def vectors(self, items):
        self.begun.set()
        assert self.free.wait(10)
        self.batches.append([len(item) for item in items])
        if any(len(item) == 13 for item in items):
            raise RuntimeError("a faulty batch")
        return np.array([[len(item)] for item in items], dtype=np.float32)


def ones(*lengths):
    return [[1] * length for length in lengths]


def running(work, workers=1, limit=100, wait=0.0):
    """Run an async function with a batcher and its model."""

    async def main():
        with ThreadPoolExecutor(workers) as pool:
            model = Numbers(pool, workers)
            batcher = Batcher(model, limit, wait)
            await work(batcher, model)
            assert (batcher.waiting, batcher.tokens_waiting) == (0, 0)

    asyncio.run(main())


def test_each_request_gets_its_own_rows_in_its_own_order():
    async def work(batcher, model):
        asked = [(3, 1, 2), (5,), (9, 4, 4, 1), (2,) * 7]
        found = await asyncio.gather(*(batcher.vectors(ones(*lengths)) for lengths in asked))
        assert [rows[:, 0].tolist() for rows in found] == [list(lengths) for lengths in asked]
        assert sum(map(len, model.batches)) == 15
        assert max(map(len, model.batches)) > 1

    running(work)
    running(work, workers=3)


def test_texts_that_arrive_while_a_batch_runs_share_the_next_one_and_long_requests_do_not_hold_short_ones_up():
    async def work(batcher, model):
        model.free.clear()
        first = asyncio.create_task(batcher.vectors(ones(1)))
        await asyncio.to_thread(model.begun.wait, 10)
        long = asyncio.create_task(batcher.vectors(ones(*[10] * 5)))
        short = [asyncio.create_task(batcher.vectors(ones(2))) for _ in range(3)]
        await asyncio.sleep(0.01)
        model.free.set()
        await asyncio.gather(first, long, *short)
        assert model.batches[:3] == [[1], [10], [2, 2, 2, 10]]

    running(work)


def test_a_text_waits_for_others_only_while_a_batch_runs_and_not_longer_than_asked():
    async def work(batcher, model):
        await batcher.vectors(ones(1))  # nothing runs: at once, or this would take a minute
        model.begun.clear()
        model.free.clear()
        first = asyncio.create_task(batcher.vectors(ones(2)))
        await asyncio.to_thread(model.begun.wait, 10)
        second = asyncio.create_task(batcher.vectors(ones(3)))
        await asyncio.sleep(0.05)
        assert batcher.waiting == 1
        third = asyncio.create_task(batcher.vectors(ones(8)))  # fills the batch
        await asyncio.sleep(0.05)
        assert batcher.waiting == 0
        model.free.set()
        await asyncio.gather(first, second, third)

    running(work, workers=2, wait=60)


def test_more_than_may_wait_is_refused_with_the_time_to_wait(says):
    async def work(batcher, model):
        model.free.clear()
        running = asyncio.create_task(batcher.vectors(ones(1)))
        await asyncio.to_thread(model.begun.wait, 10)
        waiting = asyncio.create_task(batcher.vectors(ones(1, 1, 1)))
        await asyncio.sleep(0.01)
        with says(RequestError) as refused:
            await batcher.vectors(ones(1, 1))
        assert int(refused.value.headers["retry-after"]) >= 1
        more = asyncio.create_task(batcher.vectors(ones(1)))
        await asyncio.sleep(0.01)
        model.free.set()
        await asyncio.gather(running, waiting, more)
        assert len(await batcher.vectors(ones(*[1] * 9))) == 9  # nothing waits: a large request is taken

    running(work, limit=4)


def test_what_was_given_up_is_not_encoded():
    async def work(batcher, model):
        model.free.clear()
        first = asyncio.create_task(batcher.vectors(ones(1)))
        await asyncio.to_thread(model.begun.wait, 10)
        dropped, kept = (asyncio.create_task(batcher.vectors(ones(n, n))) for n in (7, 5))
        await asyncio.sleep(0.01)
        dropped.cancel()
        await asyncio.sleep(0.01)
        assert batcher.waiting == 2
        model.free.set()
        await asyncio.gather(first, kept)
        assert model.batches == [[1], [5, 5]]

    running(work)


def test_a_fault_reaches_the_requests_of_its_batch_only():
    async def work(batcher, model):
        good, bad = await asyncio.gather(
            batcher.vectors(ones(10)), batcher.vectors(ones(13, 13)), return_exceptions=True
        )
        assert good.tolist() == [[10]]
        assert "a faulty batch" in str(bad)
        assert (await batcher.vectors(ones(4))).tolist() == [[4]]

    running(work)


def test_an_item_that_cannot_be_read_fails_alone():
    async def work(batcher, model):
        encode = model.vectors

        def vectors(items):
            if any(len(item) == 3 for item in items):
                raise IndexError("beyond the last position")
            return encode(items)

        model.vectors = vectors
        model.free.clear()
        asked = [asyncio.create_task(batcher.vectors(ones(length))) for length in (1, 2, 3, 4, 5)]
        await asyncio.to_thread(model.begun.wait, 10)
        model.free.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [None if isinstance(rows, IndexError) else rows[0, 0] for rows in found] == [1, 2, None, 4, 5]

    running(work)
