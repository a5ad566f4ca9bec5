from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from ...core.dtypes import DType
from ..target import Target as Target
from .array_kernels import ArrayKernel as ArrayKernel
from .arrays import parallel as parallel
from .arrays import unroll as unroll
from .branches import conditional as conditional
from .branches import fail_if as fail_if
from .branches import while_loop as while_loop
from .compilation import FamilyCode as FamilyCode
from .compilation import KernelFamily as KernelFamily
from .compilation import call as call
from .compilation import family as family
from .control import LoopRange as LoopRange
from .control import loop as loop
from .dots import dot4 as dot4
from .dots import lookup as lookup
from .dots import pair_dot as pair_dot
from .dots import round_bytes as round_bytes
from .dots import saturating_dot2 as saturating_dot2
from .dots import tile_config as tile_config
from .dots import tile_dot as tile_dot
from .dots import tile_load as tile_load
from .dots import tile_release as tile_release
from .dots import tile_store as tile_store
from .dots import tile_zero as tile_zero
from .entry_points import Work as Work
from .functions import abs as abs
from .functions import any as any
from .functions import ceil as ceil
from .functions import convert as convert
from .functions import floor as floor
from .functions import fma as fma
from .functions import full as full
from .functions import full_like as full_like
from .functions import round_even as round_even
from .functions import sqrt as sqrt
from .functions import to_int as to_int
from .functions import to_integer as to_integer
from .functions import trunc as trunc
from .functions import truncated_quotient as truncated_quotient
from .functions import type_of as type_of
from .functions import where_any as where_any
from .functions import wide_product as wide_product
from .functions import zeros as zeros
from .neon import add_pairs as add_pairs
from .neon import byte_products as byte_products
from .neon import dot4_signed as dot4_signed
from .neon import load_halves as load_halves
from .neon import matrix_dot as matrix_dot
from .neon import pair_sums as pair_sums
from .operators import apply as apply
from .parameters import Array as Array
from .pointers import Pointer as Pointer
from .pointers import Registers as Registers
from .pointers import copy as copy
from .pointers import fence as fence
from .values import Value as Value
from .values import bitcast as bitcast
from .values import clamp as clamp
from .values import concat as concat
from .values import joined as joined
from .values import maximum as maximum
from .values import minimum as minimum
from .values import part as part
from .values import select as select
from .values import shuffle as shuffle
from .values import value as value
from .vectors import after as after
from .vectors import all as all
from .vectors import constant_vector as constant_vector
from .vectors import first as first
from .vectors import gather as gather
from .vectors import insert as insert
from .vectors import iota as iota
from .vectors import likely as likely
from .vectors import null as null
from .vectors import opaque as opaque
from .vectors import opaque_pointer as opaque_pointer
from .vectors import pointer as pointer
from .vectors import reduce_add as reduce_add
from .vectors import reduce_lanes as reduce_lanes
from .vectors import reduce_max as reduce_max
from .vectors import reduce_min as reduce_min
from .vectors import registers as registers
from .vectors import splat as splat
from .vectors import stack as stack
from .vectors import tail_mask as tail_mask

# At run time, element types are dtypes. For checkers, `x: f32` declares a value, and `f32` is a dtype (values.py).
f16: TypeAlias = Value
bf16: TypeAlias = Value
f32: TypeAlias = Value
f64: TypeAlias = Value
i8: TypeAlias = Value
u8: TypeAlias = Value
i16: TypeAlias = Value
u16: TypeAlias = Value
i32: TypeAlias = Value
u32: TypeAlias = Value
i64: TypeAlias = Value
u64: TypeAlias = Value
bool1: TypeAlias = Value

_Element = TypeVar("_Element", bound=Value)

class ptr(Pointer, Generic[_Element]):
    """A pointer parameter; `cast` may rebind it to elements of another type."""

    def __add__(self, i: Any) -> ptr[_Element]: ...
    def cast(self, dtype: DType, align: int = 1) -> ptr[Any]: ...

def __getattr__(name: str) -> Callable[..., Value]: ...  # the functions of scalar/table.py
