"""Wrappers of computations: results have the declared dtype and own their memory.

Lives here: `narrowed` and `guarded`, applied to users' computations; `watched`, which checks any kernel for the flag
`check_inputs`; the aliasing that `inplace` and `views` permit.
Not here: reuse of the memory of dying values (compiler/inplace.py), a privilege of the planner, never of a kernel.

NumPy widens bfloat16 and float16 next to Python numbers and other types. The result of a `compute` whose output is
`like` an input is cast back.

Two rules govern memory: an operator writes none of its inputs, and its results own their memory. Users' computations
receive read-only views, so a write raises at its line. A result that aliases an input is copied: the value is right,
and no later reuse of that memory can change it. The flag turns the copy into an error. The catalogue's computations are
trusted, and tests run all its tables under the flag.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags, lod
from ..core.errors import OpError, PermissionDeniedError
from .call import contract_violation

if TYPE_CHECKING:
    from .definition import Operator


@functools.cache
def _floats() -> frozenset[np.dtype[Any]]:
    return frozenset(d.np for d in dtypes.floating)


def narrowed(op: Operator, reference: Callable[..., Any]) -> Callable[..., Any]:
    """Return `reference` with its floating results cast to the dtype of the inputs that they are `like`."""
    several_in = {i.name for i in op.inputs if i.repeated}
    likes = [
        None if o.like is None or o.repeated or o.like in several_in else op.input_names.index(o.like)
        for o in op.outputs
    ]
    if all(i is None for i in likes):
        return reference

    first = likes[0]

    def single(*arrays: Any, **out: Any) -> object:
        assert first is not None
        result, source = reference(*arrays, **out), arrays[first]
        return result if getattr(result, "dtype", None) is source.dtype else _as_float_of(source, result)

    def several(*arrays: Any) -> object:
        results = reference(*arrays)
        if not isinstance(results, (tuple, list)) or len(results) != len(likes):
            return results  # the caller reports it
        return tuple(r if i is None else _as_float_of(arrays[i], r) for i, r in zip(likes, results))

    return single if len(likes) == 1 else several


def _as_float_of(source: Any, result: Any) -> object:
    """Return `result` in the dtype of array `source` if both are floating and differ."""
    dtype, target = getattr(result, "dtype", None), getattr(source, "dtype", None)
    if dtype is None or target is None or dtype == target:
        return result
    return result.astype(target) if _floats().issuperset((dtype, target)) else result


EXACT = 100_000  # steps that NumPy may take to tell whether two strided arrays share an element


def sharing_allowed(op: Operator, output: str) -> tuple[str, ...]:
    """Return the inputs that an output may alias, by `inplace` and `views`."""
    return (*_names(op.inplace.get(output)), *_names(op.views.get(output)))


def _names(declared: Any) -> tuple[str, ...]:
    return () if declared is None else (declared,) if isinstance(declared, str) else tuple(declared)


def named_results(op: Operator, result: Any) -> list[tuple[str, Any]]:
    """Return the flat results of a kernel, each with its output's name."""
    flat = op.flat_outputs(result)
    if len(op.outputs) == 1:
        return [(op.output_names[0], r) for r in flat]
    names = op.pack_all(range(len(flat)))
    pairs: list[Any] = [None] * len(flat)
    for name, places in zip(op.output_names, names):
        for i in places if isinstance(places, list) else (places,):
            pairs[i] = (name, flat[i])
    return pairs


def _arrays(value: Any) -> Sequence[Any]:
    """Return the arrays of one input: several of a repeated one, none of a handle or an absent one."""
    if type(value) in (list, tuple):
        return [a for v in value for a in _arrays(v)]
    value = getattr(value, "_array", value)
    return (value,) if isinstance(value, np.ndarray) else ()


def shared_input(op: Operator, output: str, result: Any, inputs: Sequence[Any]) -> str | None:
    """Return the name of an input that a result aliases without permission; None without one."""
    if not isinstance(result, np.ndarray):
        return None
    allowed = sharing_allowed(op, output)
    for name, value in zip(op.input_names, inputs):
        if name not in allowed and any(_share(result, array) for array in _arrays(value)):
            return name
    return None


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=EXACT)  # type: ignore[arg-type]
    except Exception:  # too hard to tell
        return True


# ---- users' computations --------------------------------------------------------------------------------------------


def guarded(op: Operator, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's computation: its inputs read-only, its results its own, new offsets a LoD over their rows."""
    new_offsets = [(op.output_names.index(o.lod_of), k, o.repeated) for k, o in enumerate(op.outputs) if o.lod_of]

    def run(*arrays: Any, **out: Any) -> object:
        readonly_arrays = [_readonly(a) for a in arrays]
        try:
            result = compute(*readonly_arrays, **out)
        except (ValueError, TypeError, BufferError) as error:
            if _refused(error):
                raise _wrote(op, compute, arrays, error) from error
            raise
        if type(result) is np.ndarray:
            return result if result.base is None else _own(op, 0, result, readonly_arrays)
        if type(result) in (tuple, list):
            if new_offsets and len(result) == len(op.outputs):
                _check_offsets(op, new_offsets, result)
            return type(result)(
                [
                    _own(op, i, r, readonly_arrays) if isinstance(r, (np.ndarray, list)) else r
                    for i, r in enumerate(result)
                ]
            )
        return result

    return run


def _check_offsets(op: Operator, pairs: Sequence[tuple[int, int, bool]], results: Sequence[Any]) -> None:
    """Raise DefinitionError if offsets among the results are not a LoD over the rows they are for.

    pairs: of results, the rows, their offsets, and whether these are all levels. For a last level below the levels
    of an input, this is only the part that the result determines.
    """
    for rows, offsets, repeated in pairs:
        levels = results[offsets] if repeated else [results[offsets]]
        if all(isinstance(level, np.ndarray) and level.ndim == 1 for level in levels):
            why = lod.wrong(tuple(levels), len(results[rows]) if np.ndim(results[rows]) else -1)
            if why is not None:
                raise offsets_violation(op, "compute", op.output_names[rows], why, [x.tolist() for x in levels])


def offsets_violation(
    op: Operator, rule: str, output: str, why: str, levels: Sequence[Sequence[int]], node: str | None = None
) -> OpError:
    """Return the error for offsets of an output that are not a LoD over its rows."""
    return contract_violation(
        op,
        rule,
        f"gave offsets of {output!r} that are not a LoD: {why}",
        node=node,
        found=levels if sum(map(len, levels)) <= 24 else f"{len(levels)} levels",
        wanted="offsets that start at 0, never fall and end at the number of units below",
    )


def _readonly(value: Any) -> object:
    if type(value) is np.ndarray:
        view = value.view()
        view.setflags(write=False)
        return view
    if type(value) in (list, tuple):
        return [_readonly(v) for v in value]
    return value


def _own(op: Operator, position: int, result: Any, inputs: Sequence[Any]) -> object:
    """Return a result, or its copy if it aliases an input without permission."""
    if type(result) is list:
        return [_own(op, position, r, inputs) for r in result]
    if not isinstance(result, np.ndarray) or result.base is None or position >= len(op.output_names):
        return result
    output = op.output_names[0 if len(op.output_names) == 1 else position]
    name = shared_input(op, output, result, inputs)
    if name is None:
        return result
    if flags.check_inputs:
        raise alias_error(op, output, name)
    return result.copy()


def alias_error(
    op: Operator, output: str, name: str, node: str | None = None, at: str | None = None
) -> PermissionDeniedError:
    """Return the error for a result that aliases an input without permission."""
    return PermissionDeniedError(
        op=op.name,
        node=node,
        at=at,
        what=f"output {output!r} shares the memory of input {name!r}",
        wanted="an array of its own",
        do=f'return {output}.copy(), or declare views = {{"{output}": "{name}"}}'
        f' for a view of it, inplace = {{"{output}": "{name}"}} for all of it',
    )


def write_error(
    op: Operator, name: str, node: str | None = None, at: str | None = None, message: Any = None
) -> PermissionDeniedError:
    """Return the error for a write to an input."""
    return PermissionDeniedError(
        op=op.name,
        node=node,
        at=at,
        what=f"compute writes its input {name!r}",
        found=message,
        wanted="inputs as they were: others read them too",
        do=f"work on {name.split(', ')[0].strip(chr(39))}.copy()",
    )


def _refused(error: Exception) -> bool:
    """Return whether NumPy, or the owner of a buffer, refused a write."""
    text = str(error)
    return "read-only" in text or "not writ" in text or "WRITEABLE" in text


def _wrote(op: Operator, compute: Callable[..., Any], arrays: Sequence[Any], error: Exception) -> Exception:
    """Return the error for a refused write.

    The input is identified by repeating the computation with one input at a time read-only and the others copied:
    operators have no state that this could disturb.
    """
    candidates = [n for n, a in zip(op.input_names, arrays) if _arrays(a)]
    if len(candidates) > 1:
        written_inputs = []
        for i, (name, value) in enumerate(zip(op.input_names, arrays)):
            if name in candidates:
                try:
                    compute(*[_readonly(a) if k == i else _copied(a) for k, a in enumerate(arrays)])
                except Exception as again:
                    if _refused(again):
                        written_inputs.append(name)
            del value
        candidates = written_inputs or candidates
    if not candidates:
        return error
    return write_error(op, "', '".join(candidates), message=str(error))


def _copied(value: Any) -> object:
    if type(value) in (list, tuple):
        return [_copied(v) for v in value]
    return value.copy() if isinstance(value, np.ndarray) else value


# ---- the switch check_inputs ----------------------------------------------------------------------------------------


def fingerprint(value: Any) -> tuple[Any, ...] | tuple[Any | np.dtype[Any], Any | tuple[()], Any] | None:
    """Return a fingerprint that changes when an input is written: dtype, shape and a digest of the elements.

    For a list, the fingerprints of its items. None for handles, which operators may change. The offsets of a LoD are
    inputs of their own here.
    """
    if type(value) in (list, tuple):
        return tuple([fingerprint(v) for v in value])
    value = getattr(value, "_array", value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    if value.dtype.kind == "O":
        content: Any = hash(tuple([repr(v) for v in np.asarray(value).ravel().tolist()]))
    else:
        import hashlib  # 3 ms of `import opwright`, needed only by a debug mode

        content = hashlib.blake2b(np.ascontiguousarray(value).view(np.uint8).data, digest_size=16).digest()
    return value.dtype, value.shape, content


def watched(
    op: Operator, kernel: Callable[..., Any], node: str | None = None, at: str | None = None
) -> Callable[..., Any]:
    """Return a kernel that raises if it writes an input or returns an unpermitted alias of one."""

    def run(*arrays: Any, **out: Any) -> object:
        before = [fingerprint(a) for a in arrays]
        result = kernel(*arrays, **out)
        compare(op, arrays, before, named_results(op, result), node, at)
        return result

    return run


def compare(
    op: Operator,
    inputs: Sequence[Any],
    before: Sequence[Any],
    results: Sequence[tuple[str, Any]],
    node: str | None = None,
    at: str | None = None,
) -> None:
    """Raise PermissionDeniedError naming operator, output and input if a memory rule was violated."""
    for name, value, was in zip(op.input_names, inputs, before):
        if fingerprint(value) != was:
            raise write_error(op, name, node, at, "other elements after the call than before")
    for output, result in results:
        shared = shared_input(op, output, result, inputs)
        if shared is not None:
            raise alias_error(op, output, shared, node, at)
