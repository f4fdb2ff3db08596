import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from likewise.inference.cores import cores, one_core_threads
from likewise.inference.engines.engine import TorchEngine
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder


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
        assert new.submit(cores).result() == 2
    assert torch.get_num_threads() == 2


def test_overlapping_calls_share_the_threads_and_a_fault_leaves_them_usable(two_threads, tiny_model, texts):
    tiny_model.eval()
    running = set()

    def vectors(engine):
        return TextEncoder(tokens_of(tiny_model), engine, batch_size=3).rows(texts)

    wanted = vectors(TorchEngine(tiny_model))

    class Watched(TorchEngine):
        def open(self, workers, tokens=False):
            call = super().open(workers, tokens)

            def watched(ids, mask):
                running.add(threading.get_ident())
                if self.faulty:
                    raise RuntimeError("broken")
                return call(ids, mask)

            return watched

    watched = Watched(tiny_model)
    watched.faulty = True
    with pytest.raises(RuntimeError, match="broken"):
        vectors(watched)
    watched.faulty = False
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: vectors(watched), range(8)))
    assert len(running) <= 2
    for one in found:
        torch.testing.assert_close(one, wanted, atol=1e-5, rtol=0)
