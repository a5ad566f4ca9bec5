"""Record ATen calls of PyTorch's operator database, for tests of rules without torch: aten_calls.json.gz.

    python tests/frontends/record_aten_calls.py tests/frontends/aten_calls.json.gz

Names of the database behind the file add the calls of these alone to it. Each sample of `op_db` runs eagerly under a
dispatch mode, which notes the calls of functional operators with a rule: arguments, results, dtypes. A few small calls
of each overload are kept. Needs torch; not part of `make test`.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.frontends.torch.importer import PASSED, shared_array
from opwright.frontends.torch.nodes import dtype_of, operator_name
from opwright.frontends.torch.rules import TABLE, load_rules

ELEMENTS, CALLS, SAMPLES = 400, 3, 6


def plain(value: Any) -> Any:
    """Return an argument of a sample without gradients."""
    return value.detach().contiguous() if isinstance(value, torch.Tensor) else value


class Unrecordable(Exception):
    """An argument that JSON does not hold."""


def encoded(value: Any) -> Any:
    """Return a value as JSON: tensors as {"dtype", "shape", "bytes"}, numbers that JSON lacks as {"float"}."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.numel() > ELEMENTS or value.is_quantized:
            raise Unrecordable
        array = np.ascontiguousarray(shared_array(value)).reshape(value.shape)
        kind = dtype_of(value.dtype).name
        return {"dtype": kind, "shape": list(array.shape), "bytes": base64.b64encode(array.tobytes()).decode()}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (list, tuple)):
        return [encoded(v) for v in value]
    raise Unrecordable


class Recorder(TorchDispatchMode):
    """Notes the calls of functional operators that have a rule."""

    def __init__(self, calls: dict[str, Any], seen: Counter[str]) -> None:
        super().__init__()
        self.calls, self.seen = calls, seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        name = operator_name(func)
        note = None
        if (
            TABLE.find(name) is not None
            and name not in TABLE._impure
            and not schema.is_mutable
            and torch.Tag.nondeterministic_seeded not in func.tags
            and "empty" not in full  # results that are not defined
            and self.seen[full] < CALLS
        ):
            try:
                note = {
                    "operator": name,
                    "inputs": encoded(args),
                    "attributes": {k: encoded(v) for k, v in kwargs.items() if k not in PASSED},
                }
                tensors = [v for v in args if isinstance(v, (torch.Tensor, int, float))][:2]
                if len(tensors) == 2 and any(isinstance(v, torch.Tensor) for v in tensors):
                    note["promoted"] = dtype_of(torch.result_type(*tensors)).name
            except (Unrecordable, TypeError):
                note = None
        results = func(*args, **kwargs)
        if note is not None:
            several = results if isinstance(results, (list, tuple)) else (results,)
            try:
                note["results"] = encoded(several)
                note["several"] = isinstance(results, (list, tuple))
                key = json.dumps(note, sort_keys=True)
                if key not in self.calls:
                    self.calls[key] = full
                    self.seen[full] += 1
            except (Unrecordable, TypeError):
                pass
        return results


def write(path: str, calls: dict[str, str]) -> None:
    """Write the calls of an overload, in order, to a file."""
    rows = [json.loads(key) for key in sorted(calls)]
    Path(path).write_bytes(gzip.compress(json.dumps({"torch": torch.__version__, "calls": rows}).encode(), mtime=0))
    print(len(rows), "calls of", len(set(calls.values())), "overloads", flush=True)


def main(path: str, *names: str) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    load_rules()
    calls: dict[str, Any] = {}
    seen: Counter[str] = Counter()
    if names:
        for call in json.loads(gzip.decompress(Path(path).read_bytes()))["calls"]:
            calls[json.dumps(call, sort_keys=True)] = call["operator"]
    for number, info in enumerate(op_db):
        if number % 60 == 59 and not names:
            write(path, calls)  # a run may be stopped
        if names and info.name not in names:
            continue
        if torch.float32 not in info.dtypes or "sparse" in info.name or "jiterator" in info.name:
            continue
        for dtype in (torch.float32, torch.int64):
            if dtype not in info.dtypes:
                continue
            torch.manual_seed(0)
            try:
                samples = list(itertools.islice(info.sample_inputs("cpu", dtype), SAMPLES))
            except Exception:  # of the samples' own making
                continue
            for sample in samples:
                try:
                    inputs, args, kwargs = pytree.tree_map(plain, (sample.input, sample.args, sample.kwargs))
                    with torch.no_grad(), Recorder(calls, seen):
                        info.op(inputs, *args, **kwargs)
                except Exception:
                    continue
    write(path, calls)


if __name__ == "__main__":
    main(*sys.argv[1:])
