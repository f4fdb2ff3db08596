"""The names of engines and precisions; nothing here imports torch."""

from typing import Literal, get_args

EngineName = Literal["auto", "torch", "openvino", "onnx"]
EnginePrecision = Literal["auto", "fp32", "bf16", "int8"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
PRECISIONS: tuple[EnginePrecision, ...] = get_args(EnginePrecision)
EngineVariant = tuple[EngineName, EnginePrecision]
