import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
if {keep}:
    from likewise.training.memory import keep_pages
    assert keep_pages()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(10_000_000, dtype=np.float32)
before = faults()
for _ in range(5):
    np.ones(10_000_000, dtype=np.float32)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
def test_a_large_array_is_made_of_the_memory_of_the_last_one():
    faults = [
        int(subprocess.run([sys.executable, "-c", PROGRAM.format(keep=keep)], capture_output=True, check=True).stdout)
        for keep in (False, True)
    ]
    assert faults[1] < faults[0] / 10, faults
