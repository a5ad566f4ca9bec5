"""Places of keys among others in rising order.

Lives here: the maker of KeyPlaces, its family.  Not here: rows at known places (gathers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import language as kl
from ..language import i32, i64, ptr
from ..loops.forms import KeyPlaces
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

STEP_BYTES = 16  # of memory moved that take about as long as a step of a search


@kl.family
def check_order(work, keys: ptr[i32], n: i64):
    """0 where n keys do not fall, else 1."""
    falls, lanes = kl.value(0), work.target.vector_bytes // 4
    i = kl.value(1)
    while i < n:
        mask = kl.first(kl.minimum(n - i, lanes), lanes)
        fallen = (keys.load(i, lanes, mask) < keys.load(i - 1, lanes, mask)) & mask
        falls = kl.select(kl.any(fallen), 1, falls)
        i = i + lanes
    return falls


@kl.family
def search_keys(work, keys: ptr[i32], wanted: ptr[i32], y: ptr[i32], n: i64):
    """Bisection: before `low` all keys are less, from `high` on none is."""
    for item in work.items():
        key, low, high = wanted[item], kl.value(0), kl.value(n)
        while low < high:
            middle = (low + high) // 2
            less = keys[middle] < key
            low, high = kl.select(less, middle + 1, low), kl.select(less, high, middle)
        found = kl.value(-1)
        if low < n:
            found = kl.select(keys[low] == key, low, -1)
        y[item] = found.to(i32)


@maker(KeyPlaces)
def make_key_places(form: KeyPlaces, build: Builder) -> None:
    """Of int32."""
    keys, wanted, y = form.keys, form.wanted, form.output
    if any(b.dtype is not i32 or b.parent is not None or len(b.shape) != 1 for b in (keys, wanted, y)):
        raise Unmade(f"places of {wanted!r} among {keys!r}")
    if wanted.size != y.size or not keys.size < 1 << 31:
        raise Unmade(f"places {y!r} of {wanted!r} among {keys!r}")
    if not form.in_order:
        build.step(check_order.code(), [build.pointer(keys), keys.size], 1, chunk=1)
    words = [build.pointer(keys), build.pointer(wanted), build.pointer(y), keys.size]
    work = STEP_BYTES * keys.size.bit_length()
    build.step(search_keys.code(), words, wanted.size, chunk=grain(work, wanted.size))
