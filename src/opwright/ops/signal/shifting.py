"""The zero frequency in the middle, and back.

Lives here: fftshift, ifftshift.  Not here: transforms (fourier.py).
"""

from __future__ import annotations

from typing import Any

from .. import array, dispatch
from ..array import run_time_axes
from ..inference import is_static, static_axes


def _shifted(function: str, x: Any, axes: Any, sign: int, name: str | None) -> Any:
    x = dispatch.to_tensor(x)
    if not is_static(axes):
        axes = run_time_axes.as_axes(axes, array.rank(x))
        return array.roll(x, sign * (array.gather(array.shape_op(x), axes) // 2), axes, name=name)
    chosen = static_axes(axes, "axes")
    if chosen is None:
        if x.shape.rank is None:
            raise TypeError(f"{function}: the rank must be known while tracing, or axes be given")
        chosen = tuple(range(x.shape.rank))
    if not chosen:
        return array.identity(x, name=name)
    by = sign * (array.gather(array.shape_op(x), _from_front(chosen, x)) // 2)
    return array.roll(x, by, list(chosen), name=name)


def _from_front(axes: tuple[int, ...], x: Any) -> Any:
    """Numbers of axes as positions in the shape."""
    if x.shape.rank is not None:
        return [a + x.shape.rank if a < 0 else a for a in axes]
    return array.stack([array.rank(x) + a if a < 0 else a for a in axes])


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Each axis rolled by half its size, so that the frequency 0, which comes first, comes in the middle.

    axes: an int, several, or None for all of them. See Roll.

    .. math:: output_{(i + \\lfloor n / 2 \\rfloor) \\bmod n} = x_i
    """
    return _shifted("fftshift", x, axes, 1, name)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """What undoes `fftshift`; for odd sizes the two differ.

    .. math:: output_i = x_{(i + \\lfloor n / 2 \\rfloor) \\bmod n}
    """
    return _shifted("ifftshift", x, axes, -1, name)
