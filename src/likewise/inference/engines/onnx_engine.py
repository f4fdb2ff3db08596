"""ONNX Runtime: export by torch, dynamic int8 quantization, and running. Nothing here imports torch but the export.

Not through optimum-onnx, which sentence-transformers' own ONNX backend uses: its release 0.1 wants transformers below
4.58, and its graph ends before the pooling.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise import processor
from likewise.errors import require_extra
from likewise.inference.cores import cores
from likewise.inference.engines.engine import INPUTS, OUTPUT, TOKENS, Call, CannotExport, Engine, EnginePrecision

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from sentence_transformers import SentenceTransformer

    from likewise.inference.engines.graph import PooledGraph

FILE, WHOLE = "model.onnx", "with-tokens.onnx"
_OPSET = 17  # the first with LayerNormalization


def export(model: SentenceTransformer, folder: Path) -> None:
    """Write the pooled graph in float32 as model.onnx.

    If this graph omits tokens, because the model pools a single token, a full graph is also written.

    Raises:
        CannotExport: If torch's exporter does not support the model.
        MissingExtraError: If onnx or onnxruntime is not installed.
    """
    require_extra("onnx", "The engine onnx", "onnx", "onnxruntime")
    import torch

    from likewise.inference.engines.graph import example, write_graphs

    def write(graph: PooledGraph, is_whole: bool) -> None:
        batch = {0: "sentences", 1: "tokens"}
        torch.onnx.export(
            graph,
            example(model),
            folder / (WHOLE if is_whole else FILE),
            input_names=list(INPUTS),
            output_names=graph.outputs,
            dynamic_axes=dict.fromkeys([*INPUTS, TOKENS], batch) | {OUTPUT: {0: "sentences"}},
            opset_version=_OPSET,
            dynamo=False,  # five times as fast as the newer exporter, and without another package
        )

    write_graphs(model, write)


def quantise(source: Path, folder: Path, batches: object = None) -> None:
    """Write an int8 copy of an export, with quantized weights and activations quantized per batch.

    Embeddings are not quantized, because they cost no time and their rounding would cost most of the accuracy. The last
    products of the feed-forward networks are not quantized either: their inputs have the widest range, and in float32,
    they halve the distance from float32 at a fifth of the speed (all-MiniLM-L6-v2, AVX2, 512 sentences: lowest cosine
    0.992 instead of 0.984, 1.34 times as fast as float32 instead of 1.70).
    """
    require_extra("onnx", "The engine onnx", "onnx", "onnxruntime")
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root, level = logging.getLogger(), logging.getLogger().level
    root.setLevel(logging.ERROR)  # it would tell of a preparation that changes nothing here
    try:
        quantize_dynamic(
            source / FILE,
            folder / FILE,
            op_types_to_quantize=["MatMul", "Gemm"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            nodes_to_exclude=_narrowing(source / FILE),
            # Without VNNI, products of two int8 pairs overflow 16 bits: weights then take 7 bits.
            reduce_range=not processor.has_int8(),
        )
    finally:
        root.setLevel(level)
    kinds = {node.op_type for node in onnx.load(folder / FILE, load_external_data=False).graph.node}
    if "MatMulInteger" not in kinds:
        raise CannotExport("there is nothing to quantize to int8: the graph has no product with a weight matrix")


class OnnxEngine(Engine):
    """An engine that runs an exported graph."""

    name = "onnx"

    def __init__(self, folder: Path, precision: EnginePrecision, at_least: int) -> None:
        require_extra("onnx", "The engine onnx", "onnxruntime")
        self.precision = precision
        self.at_least = at_least
        self._folder = folder
        self._sessions: dict[tuple[str, int], InferenceSession] = {}

    def open(self, workers: int, tokens: bool = False) -> Call:
        """Return the function that runs one batch, as `Engine.open`."""
        file = WHOLE if tokens and (self._folder / WHOLE).exists() else FILE
        run = self._session(file, cores() if workers == 1 else 1).run
        outputs = [OUTPUT, TOKENS] if tokens else [OUTPUT]

        def call(ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
            vectors, *rest = run(outputs, dict(zip(INPUTS, (ids, mask), strict=True)))
            return vectors, rest[0] if tokens else None

        return call

    @property
    def gives_tokens(self) -> bool:
        """True if one of the graphs gives the vectors of tokens."""
        outputs = () if (self._folder / WHOLE).exists() else self._session(FILE, 1).get_outputs()
        return not outputs or TOKENS in [output.name for output in outputs]

    def _session(self, name: str, threads: int) -> InferenceSession:
        if (name, threads) not in self._sessions:
            from onnxruntime import InferenceSession, SessionOptions

            options = SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
            options.log_severity_level = 3
            providers = ["CPUExecutionProvider"]
            self._sessions[name, threads] = InferenceSession(str(self._folder / name), options, providers=providers)
        return self._sessions[name, threads]


def _narrowing(file: Path) -> list[str]:
    """Return the products of a graph that make longer rows shorter."""
    import onnx

    graph = onnx.load(file, load_external_data=False).graph
    shapes = {weight.name: weight.dims for weight in graph.initializer}
    products = [(node, shapes.get(node.input[1], ())) for node in graph.node if node.op_type == "MatMul"]
    return [node.name for node, shape in products if len(shape) == 2 and shape[0] > shape[1]]


ENGINE = OnnxEngine
