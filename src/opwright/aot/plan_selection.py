"""Which of its plans the function of a signature runs: instructions that choose by level, sizes and counted rows.

Lives here: `selection_text`, `counts_text`, `recount_text`, `counts_of`.
Not here: the function (modules.py), the same in C (c_source.py), bounds (size_bounds.py).
"""

from __future__ import annotations

from ..core.dtypes import as_dtype
from .model_plans import ModelPlan, SignaturePlan
from .status_codes import OUT_OF_RANGE


def counts_text(signature: SignaturePlan, most: int) -> list[str]:
    """Return instructions for the memory of counts, if any signature has some: of each number that nodes decide, and
    of the one that a plan is for."""
    lines = [f"  %counts = alloca [{2 * most} x i64], align 8"] if most else []
    for i in range(signature.counts):
        lines += [
            f"  %count{i} = getelementptr i64, ptr %counts, i32 {2 * i}",
            f"  %assumed{i} = getelementptr i64, ptr %counts, i32 {2 * i + 1}",
        ]
    lines += [f"  store i64 {p.begin}, ptr %assumed{p.counter}" for p in signature.counters]
    return [*lines, "  br label %select", "select:"]


def recount_text(signature: SignaturePlan) -> list[str]:
    """Return the block after a plan that has failed: if a count is not the assumed one, it is assumed, and the plan for
    it runs. At most one such run a count follows, as the earlier ones stay."""
    lines = ["recount:"]
    for p in signature.counters:
        i = p.counter
        lines += [
            f"  %found{i} = load i64, ptr %count{i}",
            f"  %before{i} = load i64, ptr %assumed{i}",
            f"  %counted{i} = icmp sge i64 %found{i}, 0",
            f"  %other{i} = icmp ne i64 %found{i}, %before{i}",
            f"  %again{i} = and i1 %counted{i}, %other{i}",
            f"  br i1 %again{i}, label %assume{i}, label %same{i}",
            f"assume{i}:",
            f"  store i64 %found{i}, ptr %assumed{i}",
            "  br label %select",
            f"same{i}:",
        ]
    return [*lines, f"  ret i32 {OUT_OF_RANGE}"]


def selection_text(model: ModelPlan, signature: SignaturePlan, name: str, wide: int) -> list[str]:
    """Return instructions that go to the plan of the processor's level and of the sizes in the inputs. Sizes have the
    width of pointers."""
    lines, index = [], "0"
    if model.levels:
        index = "%level.index"
        lines += [
            f"  %level = call i32 @{name}_level()",
            "  %no.level = icmp eq i32 %level, 0",
            "  br i1 %no.level, label %unsupported, label %leveled",
            "leveled:",
            "  %level.before = sub i32 %level, 1",
            f"  {index} = zext i32 %level.before to i{wide}",
        ]
    lines += [f"  store i64 -1, ptr %count{i}" for i in range(signature.counts)]
    field = len(signature.inputs)
    for k, parameter in enumerate(signature.sizes):
        if parameter.places:
            lines += [
                f"  %size{k}.field = getelementptr i{wide}, ptr %inputs, i32 {field}",
                f"  %size{k} = load i{wide}, ptr %size{k}.field",
            ]
            field += 1
            bits = wide
        elif parameter.element is not None:
            position, element = parameter.element
            dtype = as_dtype(signature.inputs[position].dtype)
            width, bits = 8 * dtype.size, max(8 * dtype.size, wide)
            extension = "sext" if dtype.np.kind == "i" else "zext"
            read = f"%size{k}.read" if width < bits else f"%size{k}"
            lines += [
                f"  %size{k}.place = getelementptr i{width}, ptr %input{position}, i32 {element}",
                f"  {read} = load i{width}, ptr %size{k}.place",
            ]
            lines += [f"  %size{k} = {extension} i{width} {read} to i{bits}"] if width < bits else []
        else:
            lines.append(f"  %size{k} = load i64, ptr %assumed{parameter.counter}")
            bits = 64
        above = f"%above{k}" if bits == wide else f"%above{k}.word"
        lines += [
            f"  {above} = sub i{bits} %size{k}, {parameter.least}",
            f"  %within{k} = icmp ult i{bits} {above}, {parameter.num_sizes}",
            f"  br i1 %within{k}, label %within{k}.on, label %unbounded",
            f"within{k}.on:",
            *([f"  %above{k} = trunc i{bits} {above} to i{wide}"] if bits > wide else []),
            f"  %rows{k} = mul i{wide} {index}, {parameter.num_sizes}",
            f"  %index{k} = add i{wide} %rows{k}, %above{k}",
        ]
        index = f"%index{k}"
    cases = " ".join(f"i{wide} {n}, label %plan{i}" for i, n in enumerate(signature.numbers))
    return [*lines, f"  switch i{wide} {index}, label %unbounded [ {cases} ]"]


def counts_of(model: ModelPlan) -> int:
    """Return the most counts that a signature has."""
    return max(s.counts for s in model.signatures)
