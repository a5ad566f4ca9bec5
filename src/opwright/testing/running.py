"""What a call computes: against an oracle, inference, its reference, in each dtype, traced; its inputs stay.

Lives here: these checks.  Not here: places (places.py), gradients (slopes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import DType, as_dtype
from ..core.specs import TensorSpec
from ..eager.tensor import make
from ..graph import parse, same, text
from ..ops import dispatch, registry
from ..ops.lod_tensor import LoDTensor
from ..tracing.function import function
from .trial import TOLERANCE, NotTried, Trial, array, assert_near, assert_same, flat, lod_of, numbers, refs, replaced


def matches_oracle(trial: Trial, expect: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """The results are what an independent formula says.

    expect: called with the inputs as arrays, one argument for each declared input (None for an absent one, a list for
    a repeated one), floating ones in float64; gives an array, or a tuple of them. Or these themselves. An entry that is
    a pair (array, LoD) says the offsets too; without, they are not looked at.
    """
    wanted = expect
    if callable(expect):
        given = trial.operands([_exact(array(t)) for t in trial.tensors()])
        wanted = expect(*[list(x) if isinstance(x, tuple) else x for x in given])
    parts = list(wanted) if isinstance(wanted, tuple) else [wanted]
    found = trial.flat()
    assert len(found) == len(parts), f"{len(found)} results, {len(parts)} expected"
    names = [o.name for o in trial.op.outputs if not o.intermediate]
    for i, (y, part) in enumerate(zip(found, parts)):
        where = f"output {names[i]!r}" if len(names) == len(found) else f"result {i}"
        lod = None
        if isinstance(part, tuple):
            part, lod = part
        assert_near(array(y), part, where, rtol, atol)
        assert lod is None or lod_of(y) == [list(map(int, level)) for level in lod], f"{where}: LoD {lod_of(y)}"


def _exact(a: np.ndarray) -> np.ndarray:
    """Return floating numbers in float64 and integers in int64, in which a formula does not round or overflow."""
    if a.dtype.kind in "iu" and a.dtype.itemsize < 8:
        return a.astype(np.int64)
    if a.dtype.kind in "fV" or a.dtype.name == "bfloat16":
        return a.astype(np.float64)
    return a.astype(np.complex128) if a.dtype.kind == "c" else a


def inference(trial: Trial) -> None:
    """Inference promises what comes out, however little it knows: values, shapes, ranks, dtypes; each size in turn."""
    op = trial.op
    bound = op.bind(dict(trial.attrs))
    plain = trial.plain()
    tensors = plain.tensors()
    results = op.flat_outputs(_low_level(plain, bound))
    levels: dict[str, Callable[[Any], Any]] = {
        "values": lambda t: t,
        "shapes": lambda t: TensorSpec(t.shape, t.dtype),
        "ranks": lambda t: TensorSpec([None] * t.shape.rank, t.dtype),
        "dtypes": lambda t: TensorSpec(None, t.dtype),
    }
    told = {level: [to_spec(t) for t in tensors] for level, to_spec in levels.items()}
    for k, t in enumerate(tensors):
        for d in range(t.shape.rank):
            dims = t.shape.as_list()
            spec = TensorSpec([*dims[:d], None, *dims[d + 1 :]], t.dtype)
            told[f"all but size {d} of tensor {k}"] = [*tensors[:k], spec, *tensors[k + 1 :]]
    for level, specs in told.items():
        promised = []
        for s in op.infer(bound, plain.operands(specs)):
            promised.extend(s) if isinstance(s, list) else promised.append(s)
        assert len(promised) == len(results), f"{len(results)} results, {len(promised)} inferred from {level}"
        for y, spec in zip(results, promised):
            if not spec.dtype.is_handle:
                came = TensorSpec(np.shape(y), y.dtype if isinstance(y.dtype, type(spec.dtype)) else spec.dtype)
                fits = spec.shape.is_compatible_with(np.shape(y)) and np.dtype(y.dtype) == spec.dtype.np
                assert fits, f"{came.short()} came out; inferred from {level}: {spec.short()}"


def _low_level(trial: Trial, bound: Any) -> Any:
    """What the reference gives, intermediate outputs too; where there is none, what the call gives."""
    reference = trial.op.reference(bound)
    if reference is None:
        raise NotTried("it has no reference that can be run alone")
    arrays = [None if x is None else [t._array for t in x] if isinstance(x, tuple) else x._array for x in trial.inputs]
    return dispatch.quietly(reference, *arrays)


def inputs_stay(trial: Trial) -> None:
    """An operator does not write to its inputs."""
    copies = [[a.copy() for a in refs(t)] for t in trial.tensors()]
    trial.call()
    for (name, t), before in zip(trial.parts(), copies):
        same_bits = all(a.tobytes() == b.tobytes() for a, b in zip(refs(t), before) if a.dtype != object)
        assert same_bits, f"input {name!r} was written to"


def every_dtype(trial: Trial) -> None:
    """Every dtype that is declared is computed, not only accepted."""
    op = trial.op
    lead = next((i for i, x in zip(op.inputs, trial.inputs) if x is not None and not isinstance(x, tuple)), None)
    if lead is None:
        raise NotTried("no input that is a tensor")
    wrong = []
    for dtype in (d for d in lead.dtypes if not d.is_handle):
        inputs = [
            replaced(x, numbers(array(x).shape, dtype, k))
            if x is not None and not isinstance(x, tuple) and lead.name in (i.name, i.like)
            else x
            for k, (i, x) in enumerate(zip(op.inputs, trial.inputs))
        ]
        try:
            Trial(op, tuple(inputs), trial.attrs).call()
        except Exception as error:
            wrong.append(f"{dtype.name}: {str(error).splitlines()[0]}")
    if wrong:
        raise AssertionError("; ".join(wrong[:3]))


def kernel_is_compute(trial: Trial) -> None:
    """A kernel gives what `compute`, the meaning, gives."""
    op = trial.op
    if not op.kernels or op.compute_rule is None:
        raise NotTried("compute alone" if op.compute_rule is not None else "kernels alone")
    plain = trial.plain()
    wanted = op.flat_outputs(_low_level(plain, op.bind(dict(trial.attrs))))
    shown = [o.intermediate for o in op.outputs]
    if any(shown) or any(o.repeated for o in op.outputs):
        wanted = [w for w, hidden in zip(wanted, shown) if not hidden]
    for i, (found, reference) in enumerate(zip(plain.flat(), wanted)):
        np.testing.assert_allclose(array(found), reference, rtol=1e-6, atol=1e-7, err_msg=f"result {i}")


def traces(trial: Trial) -> None:
    """Within a function it gives the same, with sizes known and unknown, and the graph prints and reads back."""
    op, wanted, tensors = trial.op, trial.flat(), trial.tensors()
    unknown = [t if isinstance(t, LoDTensor) else TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors]
    for words, given in (("traced", tensors), ("traced with unknown sizes", unknown)):
        traced = function(lambda *args: flat(trial.call(list(args))), autograph=False)
        concrete = traced.get_concrete_function(*given)
        assert_same(flat(concrete(*tensors)), wanted, words, bits=False)
        graph = concrete.graph
        written = text(graph)
        if "opaque(" not in written:
            read = parse(written, lambda name: op if name == op.name else registry.get(name))
            assert same(read, graph), f"{words}: its graph's text reads back as another graph"


def pickles(trial: Trial) -> None:
    """It is found by its name, which is how files and pickles know it."""
    op = trial.op
    found = registry.get(op.name) is op
    assert found, f"ow.ops.get({op.name!r}) gives another operator: the catalogue's has this name"


def in_dtype(trial: Trial, name: str) -> Trial:
    """Return the call with floating inputs in another dtype; integers are the rounded numbers, within its range.

    raises NotTried where there are no floating inputs, or one that does not take the dtype
    """
    dtype = as_dtype(name)
    op = trial.op
    floating = [k for k, t in enumerate(trial.tensors()) if t.dtype.is_floating]
    if not floating:
        raise NotTried("no input in floats")
    for declared, value in zip(op.inputs, trial.inputs):
        members = value if isinstance(value, tuple) else () if value is None else (value,)
        if any(m.dtype.is_floating for m in members) and dtype not in declared.dtypes:
            raise NotTried(f"input {declared.name!r} does not take {name}")
    return trial.over(
        [replaced(t, make(_converted(array(t), dtype))) if k in floating else t for k, t in enumerate(trial.tensors())]
    )


def _converted(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    if not dtype.is_integer:
        return numbers.astype(dtype.np)
    return np.clip(np.rint(numbers.astype(np.float64)), max(dtype.min, -100), min(dtype.max, 100)).astype(dtype.np)


def matches_formula(
    trial: Trial, name: str, expect: Callable[..., Any], rtol: float | None, atol: float | None
) -> None:
    """Check that the results in a narrow floating dtype or in integers are those of the formula.

    A sum of rounded terms may cancel, so the absolute tolerance of floats is the dtype's at the largest result.
    raises NotTried where the formula gives no integers for an integer result, or numbers beyond its range
    """
    trial = in_dtype(trial, name)
    given = trial.operands([_exact(array(t)) for t in trial.tensors()])
    wanted = expect(*[list(x) if isinstance(x, tuple) else x for x in given])
    for y, part in zip(trial.flat(), wanted if isinstance(wanted, tuple) else (wanted,)):
        found, numbers = array(y), np.asarray(part[0] if isinstance(part, tuple) else part)
        if found.dtype.kind in "iu" and numbers.dtype.kind in "iufb":
            info = np.iinfo(found.dtype)
            exact = numbers.astype(np.float64)
            if not np.all((exact >= info.min) & (exact <= info.max) & (exact == np.rint(exact))):
                raise NotTried(f"the formula gives what {found.dtype} does not hold")
        elif found.dtype.name in TOLERANCE and atol is None:
            finite = np.abs(numbers[np.isfinite(numbers)])
            atol = TOLERANCE[found.dtype.name][0] * max(1.0, float(finite.max(initial=0)))
    matches_oracle(trial, expect, rtol, atol)
