"""A decoder-only language model: a decoding step and a prefill, here and in the official interpreter, in turn.

Lives here: the rows `language_KIND_decode`, `language_KIND_in_place` and `language_KIND_prefill`.
Not here: the model, which is that of the tests
(tests/lite/compiled/language_models.py), the table of rows (rows.py), the machine's limits (probes.py).

The model has 12 layers of 768 with 12 heads over 4 of keys and values, and 82 M weights in products: float32, int8 with
a scale for each channel, int4 with one for each 32. A prefill reads 128 tokens from position 0; a step stands at
position 256 of a cache of 1024. A figure is `invoke` alone, on one thread. A step copies the caches from its
inputs to its outputs, as officially; in place, ours has them bound as both. The share of a step is that of a copy's
bandwidth: the bytes of weights, read, and of the whole caches, read and written, in the time of the step; in place,
the bytes of weights, and of the caches as far as the mask shows them, which are only read, so that the share of the
bandwidth of reading is given, too. The share of a prefill is that of the processor's peak: operations of products by
weights. Limits are measured in turn with the steps.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import duels, measure

TESTS = Path(__file__).resolve().parent.parent / "tests" / "lite"
POSITION, TOKENS = 256, 128
SIZES = {"layers": 12, "size": 768, "inner": 2048, "heads": 12, "groups": 4, "vocabulary": 8192, "entries": 1024}


def measured(kind: str, signature: str) -> dict[str, Any]:
    """A run of a signature on one thread, and its share of the machine's limit."""
    sys.path += [str(TESTS / "compiled"), str(TESTS / "interpreter"), str(TESTS)]
    import numpy as np
    from language_models import LanguageModel

    import opwright as ow

    model = LanguageModel(kind, tokens=TOKENS, **SIZES)
    with tempfile.TemporaryDirectory(prefix="opwright-bench-") as folder, ow.flags(background=False):
        path = Path(folder) / "model.tflite"
        path.write_bytes(model.content("prefill" if signature == "prefill" else "decode"))
        count, first = (TOKENS, 0) if signature == "prefill" else (1, POSITION)
        rng = np.random.default_rng(0)
        inputs = model.inputs(rng.integers(0, model.vocabulary, count), first)
        inputs |= {name: rng.standard_normal(x.shape, np.float32) for name, x in model.caches().items()}
        products, stored = model.product_weights, model.stored_bytes
        del model
        sides = duels.present()
        calls = [_ready(side, str(path), signature, inputs).invoke for side in sides]
        limits = _limits(kind, signature)
        times = duels.in_turn(calls + [one.call for one in limits])
        result: dict[str, Any] = dict(zip(sides, times))
    if signature == "prefill":
        work = 2 * TOKENS * products
    else:
        caches = [x for name, x in inputs.items() if name.startswith(("keys", "values"))]
        moved = sum(2 * x.nbytes if signature == "decode" else x[:, : POSITION + 1].nbytes for x in caches)
        work = stored + moved
    shares: dict[str, float] = {}
    for limit, seconds in zip(limits, times[len(sides) :]):
        share = work / result["ours"] * seconds / limit.work
        shares[limit.name] = min(share, shares.get(limit.name, share))  # of two copies, the faster
    (of, share), *others = shares.items()
    return result | {"share": share, "of": ", ".join([of, *(f"{other:.0%} of {name}" for name, other in others)])}


class Limit(NamedTuple):
    """A limit of the processor. work: operations or bytes of a call."""

    name: str
    call: Callable[[], object]
    work: int


TURNS = 1_000_000
"""Turns of the sums that measure the processor's peak: some milliseconds."""


def _limits(kind: str, signature: str) -> list[Limit]:
    """Return what limits a signature, the limit of its share first."""
    from benchmarks import probes
    from opwright.compiler.kernels import peak_rates

    if signature == "prefill":
        chains = peak_rates.chains_f32() if kind == "float32" else peak_rates.chains_int8()
        return [Limit("peak", functools.partial(chains.call, TURNS), chains.operations * TURNS)]
    copies = [Limit("a copy", one.call, one.nbytes) for one in probes.copies()]
    reads = [Limit("reading", one.call, one.nbytes) for one in probes.reads()] if signature == "in_place" else []
    return copies + reads


def _ready(side: str, path: str, signature: str, inputs: dict[str, Any]) -> Any:
    """An interpreter that has run the signature, of the first subgraph, on these inputs."""
    interpreter = duels.SIDES[side](path)
    interpreter.allocate_tensors()
    runner = interpreter.get_signature_runner("prefill" if signature == "prefill" else "decode")
    details = runner.get_input_details()
    if signature == "in_place" and side == "ours":
        caches = {name: x for name, x in inputs.items() if name.startswith(("keys", "values"))}
        runner.bind(caches, caches)
    del runner  # officially it holds views, which tensors must not have while they are set
    for name, x in inputs.items():
        interpreter.set_tensor(details[name]["index"], x)
    interpreter.invoke()
    return interpreter


def _row(kind: str, signature: str) -> measure.Prepare:
    return lambda: measured(kind, signature)


ROWS: dict[str, measure.Prepare] = {
    f"language_{kind}_{signature}": _row(kind, signature)
    for kind in ("float32", "int8", "int4")
    for signature in ("decode", "in_place", "prefill")
}

if __name__ == "__main__":
    measure.main(ROWS)
