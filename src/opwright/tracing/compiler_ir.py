"""Text of the compiled form of a trace: `Function.experimental_get_compiler_ir`.

Lives here: `stage_printer`.  Not here: compilation (compiler/native_plan.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.native_plan import NativePlan, call_of, report, specialize
from ..compiler.partitioner import compile_regions

if TYPE_CHECKING:
    from .concrete import ConcreteFunction

STAGES = ("loops", "plan", "report")


def stage_printer(concrete: ConcreteFunction, tensors: Sequence[Any]) -> Callable[..., str]:
    """Return a function that prints one stage of compilation, for arguments of these tensors' shapes.

    raises ValueError for unknown shapes; the function raises ValueError for unknown stages
    """
    program = concrete.program
    plan = program.plan
    assert isinstance(plan, NativePlan)
    shapes = [
        None if v.dtype.is_handle else _shape(concrete, t)
        for t, v in zip((*tensors, *program.captured), program.graph.inputs)
    ]

    def stage(stage: str = "report") -> str:
        if stage not in STAGES:
            raise ValueError(f"{concrete.name} has no stage {stage!r}; there are {', '.join(STAGES)}")
        compiled = plan.compiled_for(shapes)
        if compiled is None:
            return f"{concrete.name} is not compiled"
        if stage == "report":
            return report(compiled)
        planned = compile_regions(specialize(plan.graph, shapes), call_of)  # regions of the cache have no text
        return "\n".join(str(r.plan.graph if stage == "loops" else r.plan) for r in planned.regions)

    return stage


def _shape(concrete: ConcreteFunction, tensor: Any) -> tuple[int, ...]:
    shape = tensor.shape
    dims = getattr(shape, "dims", shape)
    if dims is None or None in dims:
        raise ValueError(f"{concrete.name} is compiled for known sizes only; found the shape {shape}")
    return tuple(map(int, dims))
