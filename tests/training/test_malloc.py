import platform
import resource
from pathlib import Path

import numpy as np
import pytest

from likewise.training.memory import keep_pages


def count_faults(keep: bool, out: Path) -> None:
    if keep:
        assert keep_pages()
    np.ones(10_000_000, dtype=np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        np.ones(10_000_000, dtype=np.float32)
    out.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
def test_a_large_array_is_made_of_the_memory_of_the_last_one(new_process, tmp_path):
    for keep in (False, True):
        process = new_process(count_faults, keep, tmp_path / str(keep))
        process.join(60)
        assert process.exitcode == 0
    without, kept = (int((tmp_path / str(keep)).read_text()) for keep in (False, True))
    assert kept < without / 10
