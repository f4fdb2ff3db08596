"""The rules by which an engine is checked, skipped or postponed, as pure functions of known facts.

Nothing here imports torch, opens an engine or reads the cache: `Policy` collects the facts and acts on the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from likewise import processor
from likewise.inference.engines.engine import EngineChoice, EngineVariant

TORCH: EngineVariant = ("torch", "fp32")
LOWER = ("bf16", "int8")
"""The precisions below float32 that can be requested by name."""


def candidates(choice: EngineChoice) -> list[EngineVariant]:
    """Return the engines and precisions to try on this processor for a request, in descending order of speed."""
    named, auto = choice.precision in LOWER, choice.engine == "auto"
    among: dict[str, tuple[str, ...]] = {"auto": ("int8", "bf16", "fp32"), "close": ("bf16", "fp32")}
    tried = among.get(choice.precision, (choice.precision,))
    fast_graphs = not auto or bool(processor.flags() & {"avx2", "asimd"})
    pairs: list[EngineVariant] = []
    if "int8" in tried and (named or fast_graphs):
        # Without VNNI, int8 is faster than float32 in ONNX Runtime, but not in OpenVINO.
        int8: list[EngineVariant] = [("onnx", "int8"), ("openvino", "int8")]
        pairs += int8[::-1] if processor.has_int8() else int8 if named else int8[:1]
    if "bf16" in tried and (named or processor.has_bf16()):
        pairs += [("openvino", "bf16"), ("torch", "bf16")]
    if "fp32" in tried:
        pairs += [("onnx", "fp32"), ("openvino", "fp32")] if fast_graphs else []
        pairs.append(TORCH)
    return [pair for pair in pairs if auto or pair[0] == choice.engine]


@dataclass(frozen=True)
class PairFacts:
    """The facts about an engine before it runs, on which `verdict` depends.

    Attributes:
        choice: Engine and precision that the caller requested.
        failure: Reason of an earlier failure, or an empty string.
        installed: Whether its package is installed.
        on_cpu: Whether the model is on the CPU.
        own_forward: Whether parts of the model have their own `forward`, which torch's bfloat16 does not run.
        few: Whether there are too few texts for opening an export.
        is_open: Whether it is open in this process, with verified vectors.
        exported: Whether it can run without a new export.
        pays: Whether an export is allowed, and justified by the number of texts.
        judged: Whether its vectors are verified, or there are texts to verify them.
    """

    choice: EngineChoice
    failure: str = ""
    installed: bool = True
    on_cpu: bool = True
    own_forward: bool = False
    few: bool = False
    is_open: bool = False
    exported: bool = False
    pays: bool = False
    judged: bool = True


class Verdict(NamedTuple):
    """The decision on an engine, with the reason if it is not checked.

    'check' compares its vectors with torch's and uses it if they are close enough; 'skip' tries the next engine; 'wait'
    encodes in float32 until there are texts for the check.
    """

    action: Literal["check", "skip", "wait"]
    reason: str = ""


def verdict(pair: EngineVariant, facts: PairFacts) -> Verdict:
    """Return the decision on an engine and a precision.

    >>> verdict(("onnx", "fp32"), PairFacts(EngineChoice("auto", "close")))
    Verdict(action='skip', reason='there is no export for onnx')
    >>> verdict(("onnx", "fp32"), PairFacts(EngineChoice("auto", "close"), exported=True)).action
    'check'
    """
    reason = "" if facts.choice.engine != "auto" else _reason_to_skip(pair, facts)
    return Verdict("skip", reason) if reason else Verdict("check" if facts.judged else "wait")


def _reason_to_skip(pair: EngineVariant, facts: PairFacts) -> str:
    """Return why an engine that the caller did not name is skipped; "" if it is not."""
    name, close = pair[0], facts.choice.precision == "close"
    if facts.failure:
        return f"{' '.join(pair)}: {facts.failure}"
    if name == "torch":
        return "torch bf16: its parts have a custom forward" if close and facts.own_forward else ""
    if not facts.on_cpu:
        return f"{name} runs on the CPU alone"
    if not facts.installed:
        return f"{name} is not installed"
    if facts.choice.precision in LOWER:
        return ""
    if facts.few and not close:
        # Opening an export takes as long as some hundred texts.
        return "" if facts.is_open else f"{name} does not pay off for few texts"
    return "" if facts.exported or facts.pays else f"there is no export for {name}"
