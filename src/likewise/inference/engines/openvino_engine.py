"""OpenVINO: export with `convert_model`, int8 by nncf, and running. Nothing here imports torch but the export.

Not through optimum-intel, which sentence-transformers' own OpenVINO backend uses: its release 2.2 wants transformers
below 5.6, and its graph ends before the pooling.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from likewise import processor
from likewise.errors import require_extra
from likewise.inference.cores import cores
from likewise.inference.engines.engine import INPUTS, Call, CannotExport, Engine, EnginePrecision

if TYPE_CHECKING:
    import openvino
    from sentence_transformers import SentenceTransformer

    from likewise.inference.engines.graph import PooledGraph

FILE, WHOLE = "model.xml", "with-tokens.xml"
_ONE_CORE = 64
"""Cells of a batch up to which one core is as fast as several, which wait for each other in every layer."""
_FIXED = (16, 32, 64)
"""Lengths in tokens to which a single text is padded. A graph with a fixed shape needs no preparation in each call,
and that preparation takes longer than the padding."""


def _openvino() -> ModuleType:
    require_extra("openvino", "The engine openvino", "openvino")
    # openvino and nncf report each import and export to Intel over the network, unless this package is missing.
    sys.modules.setdefault("openvino_telemetry", cast(Any, None))
    import openvino

    return openvino


@lru_cache(maxsize=1)
def _core() -> openvino.Core:
    """Return the one core of this process.

    Each core puts a signal stack of its own in place, and frees it when it goes: after two of them the next signal,
    such as Ctrl-C, would find freed memory and end the process with a segmentation fault (OpenVINO 2026.4).
    """
    return _openvino().Core()


def export(model: SentenceTransformer, folder: Path) -> None:
    """Write the pooled graph in float32 as model.xml and model.bin.

    If this graph omits tokens, because the model pools a single token, a full graph is also written.

    Raises:
        CannotExport: If OpenVINO does not support the model.
        MissingExtraError: If openvino is not installed.
    """
    openvino = _openvino()
    from likewise.encoder.attention import keys_first
    from likewise.inference.engines.graph import example, write_graphs

    def write(graph: PooledGraph, is_whole: bool) -> None:
        shapes = [(name, [-1, -1], openvino.Type.i64) for name in INPUTS]
        with keys_first(model):
            inputs = dict(zip(INPUTS, example(model), strict=True))
            converted = openvino.convert_model(graph, example_input=inputs, input=shapes)
        for node in converted.get_ops():
            if node.get_type_name() == "TopK":  # of equal values torch takes the first, and OpenVINO any: a wrong token
                node.set_attribute("sort", "value")
                node.set_attribute("stable", True)
        # No fp16 weights: the vectors are to be the same.
        openvino.save_model(converted, folder / (WHOLE if is_whole else FILE), compress_to_fp16=False)

    write_graphs(model, write)


def quantise(source: Path, folder: Path, batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Write an int8 copy of an export, calibrated on batches of the corpus."""
    openvino = _openvino()
    require_extra("openvino", "int8 under openvino", "nncf")
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix

    nncf.set_log_level(logging.ERROR)
    # Without VNNI, products of two int8 pairs overflow 16 bits: weights then take 7 bits.
    overflow = OverflowFix.DISABLE if processor.has_int8() else OverflowFix.ENABLE
    with redirect_stdout(io.StringIO()):  # its progress bars
        quantised = nncf.quantize(
            _core().read_model(source / FILE),
            nncf.Dataset([dict(zip(INPUTS, batch, strict=True)) for batch in batches]),
            subset_size=len(batches),
            model_type=nncf.ModelType.TRANSFORMER,
            preset=nncf.QuantizationPreset.MIXED,
            advanced_parameters=AdvancedQuantizationParameters(overflow_fix=overflow),
        )
    openvino.save_model(quantised, folder / FILE, compress_to_fp16=False)


class OpenVINOEngine(Engine):
    """An engine that runs an exported graph."""

    name = "openvino"

    def __init__(self, folder: Path, precision: EnginePrecision, at_least: int) -> None:
        self.precision = precision
        self.at_least = at_least
        self._graphs = {file: _core().read_model(folder / file) for file in (FILE, WHOLE) if (folder / file).exists()}
        if precision == "bf16" and _is_gated(self._graphs[FILE]):
            raise CannotExport("OpenVINO would crash on the gates of its layers in bfloat16")
        self._models: dict[tuple[str, int], openvino.Model | None] = {}
        self._compiled: dict[tuple[str, int, int, int, int], openvino.CompiledModel] = {}
        self._own = threading.local()  # a request serves one thread at a time
        self._compiles = threading.Lock()

    def open(self, workers: int, tokens: bool = False) -> Call:
        """Return the function that runs one batch, as `Engine.open`."""
        threads = max(cores(), workers)
        file = WHOLE if tokens and WHOLE in self._graphs else FILE

        def call(ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
            one_core = workers > 1 or ids.size <= _ONE_CORE
            length = ids.shape[1] if len(ids) == 1 and ids.shape[1] in _FIXED else 0
            if self._of_length(file, length) is None:
                length = 0
            request = self._request(file, threads if one_core else 1, threads, length)
            # Given to `infer`, inputs and outputs pass through Python's dictionaries: a tenth of a sentence's time.
            for place, part in enumerate((ids, mask)):
                request.set_input_tensor(place, _openvino().Tensor(part, shared_memory=True))
            request.infer(share_outputs=True)
            vectors = request.get_output_tensor(0).data.copy()  # the next run of the request writes to its own
            return vectors, request.get_output_tensor(1).data.copy() if tokens else None

        return call

    @property
    def gives_tokens(self) -> bool:
        """True if one of the graphs gives the vectors of tokens."""
        return WHOLE in self._graphs or len(self._graphs[FILE].outputs) > 1

    def filled_to(self, texts: int, longest: int) -> int:
        """Return the number of tokens to which a batch is padded; a single text gets a length with its own graph."""
        longest = super().filled_to(texts, longest)
        fixed = next((length for length in _FIXED if length >= longest), 0) if texts == 1 else 0
        return fixed if fixed and self._of_length(FILE, fixed) else longest

    def _of_length(self, file: str, length: int) -> openvino.Model | None:
        """Return the model of one text of a length, 0 for any batch; None if the length is more than it can read."""
        if length == 0:
            return self._graphs[file]
        if (file, length) not in self._models:
            model = self._graphs[file].clone()
            try:
                model.reshape({port.any_name: [1, length] for port in model.inputs})
            except RuntimeError:
                model = None
            self._models[file, length] = model
        return self._models[file, length]

    def _request(self, file: str, streams: int, threads: int, length: int) -> openvino.InferRequest:
        """Return this thread's request to the model compiled for a number of batches at a time and of threads."""
        # The process is in the key, as the threads of another one did not come with a fork.
        key = (file, os.getpid(), streams, threads, length)
        requests = self._own.__dict__.setdefault("requests", {})
        if key not in requests:
            settings = {
                # Said in every case: on a CPU with bf16 it would take that by itself.
                "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" else "f32",
                "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": threads,
                # Kernels for the last shapes of batches; by default 5,000, which took 2.6 GB in a service.
                "CPU_RUNTIME_CACHE_CAPACITY": 100,
            }
            with self._compiles:
                if key not in self._compiled:
                    self._compiled[key] = _core().compile_model(self._of_length(file, length), "CPU", settings)
            requests[key] = self._compiled[key].create_infer_request()
        return requests[key]


def _is_gated(graph: openvino.Model) -> bool:
    """Return whether a product of a layer with another one's activation is in a graph, as in Llama, Qwen and Gemma.

    On a processor with AMX, OpenVINO makes one kernel of these, which divides by zero where a batch has one core.
    """
    products = (node for node in graph.get_ops() if node.get_type_name() == "Multiply")
    kinds = ({port.get_source_output().get_node().get_type_name() for port in node.inputs()} for node in products)
    return any("MatMul" in factors and factors & {"Swish", "Gelu", "Multiply"} for factors in kinds)


ENGINE = OpenVINOEngine
