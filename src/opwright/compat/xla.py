"""`ow.xla`: compilation under the names of TensorFlow's compiler.

Lives here: `experimental`: `compile`, `jit_scope`.  Not here: `ow.function(jit_compile=True)`, which they call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ..ops import dispatch
from ..tracing.function import function

__all__ = ["experimental"]


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """Compile a function and return its results for the inputs, as a list.

    raises TypeError for inputs that are not a list
    """
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a list")
    result = function(computation, jit_compile=True)(*(inputs or ()))
    return list(result) if isinstance(result, (list, tuple)) else [result]


@contextlib.contextmanager
def jit_scope(
    compile_ops: bool | Callable[..., bool] = True, separate_compiled_gradients: bool = False
) -> Iterator[None]:
    """Return a context in a `function`, which is compiled in any case. Raises RuntimeError eagerly, as TensorFlow."""
    if dispatch.state.trace is None:
        raise RuntimeError(
            "xla.experimental.jit_scope is not supported when eager execution is enabled: use it inside ow.function."
        )
    yield


experimental = SimpleNamespace(compile=compile, jit_scope=jit_scope)
