import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from likewise.inference.engines.engine import TorchEngine
from likewise.inference.runner import one_core_threads, runner_of, torch_threads


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_each_thread_of_the_pool_uses_one_core_and_all_others_what_they_did(two_threads):
    pool = one_core_threads(3)
    assert one_core_threads(3) is pool
    everyone_in = threading.Barrier(3)

    def threads_here(_):
        everyone_in.wait()
        return torch.get_num_threads()

    assert list(pool.map(threads_here, range(3))) == [1, 1, 1]
    with ThreadPoolExecutor(1) as new:
        assert new.submit(torch_threads).result() == 2
    assert torch.get_num_threads() == 2


def test_overlapping_calls_share_the_threads_and_a_fault_leaves_them_usable(two_threads, tiny_model, texts):
    tiny_model.eval()
    runner, engine, running = runner_of(tiny_model), TorchEngine(tiny_model), set()
    wanted = runner.vectors(texts, engine, at_most=3)

    class Watched(TorchEngine):
        def open(self, workers):
            call = super().open(workers)

            def watched(ids, mask):
                running.add(threading.get_ident())
                if self.faulty:
                    raise RuntimeError("broken")
                return call(ids, mask)

            return watched

    watched = Watched(tiny_model)
    watched.faulty = True
    with pytest.raises(RuntimeError, match="broken"):
        runner.vectors(texts, watched, at_most=3)
    watched.faulty = False
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: runner.vectors(texts, watched, at_most=3), range(8)))
    assert len(running) <= 2
    for one in found:
        torch.testing.assert_close(one, wanted, atol=1e-5, rtol=0)
