"""The processor's fast number formats, on which each choice of float32, bfloat16 or int8 depends.

The environment variable LIKEWISE_PROCESSOR puts another processor instead of this one: `none`, `avx2`, `bf16`,
`vnni`, or several as `bf16+vnni`. The choice made then also runs here, slowly, so that it can be tested anywhere.
"""

import os
import platform
from functools import cache
from pathlib import Path

VARIABLE = "LIKEWISE_PROCESSOR"

PROCESSORS = {
    "none": frozenset[str](),
    "avx2": frozenset({"avx2", "fma"}),
    "bf16": frozenset({"avx2", "fma", "avx512f", "avx512_bf16"}),
    "vnni": frozenset({"avx2", "fma", "avx512f", "avx512_vnni"}),
}
"""The instruction sets of what can be put in the processor's place, as Linux names them."""


def name() -> str:
    """Return the processor's name, and the simulated processor if there is one."""
    own = _cpuinfo("model name", "CPU part") or platform.processor() or platform.machine() or "unknown"
    return f"{own} as {_stand_in()}" if _stand_in() else own


def flags() -> frozenset[str]:
    """Return the instruction sets, as Linux names them."""
    if not _stand_in():
        return _own_flags()
    parts = _stand_in().split("+")
    for part in parts:
        if part not in PROCESSORS:
            raise ValueError(
                f"{VARIABLE}={_stand_in()}: choose one of {', '.join(PROCESSORS)}, or several joined by +."
            )
    return frozenset().union(*(PROCESSORS[part] for part in parts))


def has_int8() -> bool:
    """Return whether the processor multiplies int8 without overflow of a 16-bit intermediate."""
    return bool(flags() & {"avx512_vnni", "avx_vnni", "amx_int8", "i8mm", "asimddp"})


def has_bf16() -> bool:
    """Return whether the processor multiplies bfloat16; if not, it is emulated, ten times slower than float32."""
    return bool(flags() & {"avx512_bf16", "amx_bf16", "bf16"})


def _stand_in() -> str:
    return os.environ.get(VARIABLE, "").strip().lower()


@cache
def _own_flags() -> frozenset[str]:
    listed = _cpuinfo("flags", "Features")
    if listed:
        return frozenset(listed.split())
    import torch  # only Linux has the file; torch knows these elsewhere too, but takes seconds to import

    requested = {
        "avx512_bf16": "_is_avx512_bf16_supported",
        "amx_bf16": "_is_amx_tile_supported",
        "avx512_vnni": "_is_vnni_supported",
    }
    return frozenset(flag for flag, question in requested.items() if getattr(torch.cpu, question, bool)())


@cache
def _cpuinfo(*names: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(names)), "")
