"""Answers of reference kernels, with and without a compiler: on no more threads than the interpreter may use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import lite
from opwright.core import blas_threads, flags
from opwright.lite.compiled import ahead
from opwright.lite.runtime.subgraph import Subgraph


@pytest.mark.any_engine
@pytest.mark.skipif(not blas_threads.thread_settings(), reason="this BLAS has no switch for its threads")
def test_products_have_the_threads_of_the_interpreter(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.ones((3, 2), np.float32)
    function = ow.function(lambda x: ow.matmul(x, w), input_signature=[ow.TensorSpec([4, 3], ow.float32)])
    content = lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()]).convert()
    seen: list[list[int]] = []
    invoke = Subgraph.invoke

    def watched(self: Subgraph) -> None:
        seen.append(blas_threads.num_threads())
        invoke(self)

    monkeypatch.setattr(Subgraph, "invoke", watched)
    monkeypatch.setattr(ahead, "PATIENCE", 60)  # on a busy machine planning would end before the first answer
    monkeypatch.setattr(blas_threads, "_limits", {})  # those of others that run in this process
    before = blas_threads.num_threads()
    for _, put in blas_threads.thread_settings():
        put(2)
    try:
        with flags.override(compiled=True, background=True, cache_dir=str(tmp_path)):
            interpreter = lite.Interpreter(model_content=content, num_threads=1)
            interpreter.allocate_tensors()
            interpreter.invoke()
            assert seen[0] == [1] * len(before)
            assert blas_threads.num_threads() == [2] * len(before)
            if interpreter._engine is not None:
                interpreter._engine.wait()
        with flags.override(compiled=False):
            interpreter = lite.Interpreter(model_content=content, num_threads=1)
            interpreter.allocate_tensors()
            interpreter.invoke()
            assert seen[-1] == [1] * len(before)
            assert blas_threads.num_threads() == [2] * len(before)
    finally:
        for (_, put), count in zip(blas_threads.thread_settings(), before):
            put(count)
