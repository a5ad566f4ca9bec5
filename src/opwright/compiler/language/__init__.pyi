from typing import Any

from ..target import Target as Target
from .arrays import Array as Array
from .calling import ArrayKernel as ArrayKernel
from .calling import parallel as parallel
from .calling import unroll as unroll
from .control import LoopRange as LoopRange
from .control import loop as loop
from .dots import dot4 as dot4
from .dots import lookup as lookup
from .dots import pair_dot as pair_dot
from .dots import round_bytes as round_bytes
from .emitting import Work as Work
from .family import Family as Family
from .family import FamilyCode as FamilyCode
from .family import call as call
from .family import family as family
from .functions import abs as abs
from .functions import after as after
from .functions import all as all
from .functions import any as any
from .functions import bitcast as bitcast
from .functions import ceil as ceil
from .functions import clamp as clamp
from .functions import concat as concat
from .functions import constant_vector as constant_vector
from .functions import convert as convert
from .functions import first as first
from .functions import floor as floor
from .functions import fma as fma
from .functions import full as full
from .functions import full_like as full_like
from .functions import gather as gather
from .functions import insert as insert
from .functions import iota as iota
from .functions import likely as likely
from .functions import maximum as maximum
from .functions import minimum as minimum
from .functions import null as null
from .functions import on_lanes as on_lanes
from .functions import opaque as opaque
from .functions import opaque_pointer as opaque_pointer
from .functions import part as part
from .functions import pointer as pointer
from .functions import reduce_add as reduce_add
from .functions import reduce_max as reduce_max
from .functions import reduce_min as reduce_min
from .functions import registers as registers
from .functions import round_even as round_even
from .functions import select as select
from .functions import shuffle as shuffle
from .functions import splat as splat
from .functions import sqrt as sqrt
from .functions import stack as stack
from .functions import to_int as to_int
from .functions import trunc as trunc
from .functions import truncated_quotient as truncated_quotient
from .functions import type_of as type_of
from .functions import zeros as zeros
from .memory import copy as copy
from .neon import add_pairs as add_pairs
from .neon import byte_products as byte_products
from .neon import dot4_signed as dot4_signed
from .neon import joined as joined
from .neon import load_halves as load_halves
from .neon import matrix_dot as matrix_dot
from .neon import pair_sums as pair_sums
from .places import Pointer as Pointer
from .places import Registers as Registers
from .tiles import tile_config as tile_config
from .tiles import tile_dot as tile_dot
from .tiles import tile_load as tile_load
from .tiles import tile_release as tile_release
from .tiles import tile_store as tile_store
from .tiles import tile_zero as tile_zero
from .values import Value as Value
from .values import value as value

ptr: Any  # a type checker takes annotations for types
f16: Any
bf16: Any
f32: Any
f64: Any
i8: Any
u8: Any
i16: Any
u16: Any
i32: Any
u32: Any
i64: Any
u64: Any
bool1: Any

def __getattr__(name: str) -> Any: ...  # the functions of scalar/table.py
