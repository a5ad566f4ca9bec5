"""Rules of ONNX operators, by family."""
