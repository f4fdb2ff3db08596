"""The engines that run a model: torch, OpenVINO or ONNX Runtime, in float32, bfloat16 or int8."""
