from .assertions import Assert as Assert
from .assertions import assert_all_finite as assert_all_finite
from .assertions import assert_equal as assert_equal
from .assertions import assert_greater as assert_greater
from .assertions import assert_greater_equal as assert_greater_equal
from .assertions import assert_less as assert_less
from .assertions import assert_less_equal as assert_less_equal
from .assertions import assert_near as assert_near
from .assertions import assert_negative as assert_negative
from .assertions import assert_non_negative as assert_non_negative
from .assertions import assert_non_positive as assert_non_positive
from .assertions import assert_none_equal as assert_none_equal
from .assertions import assert_positive as assert_positive
from .assertions import check_numerics as check_numerics
from .static_assertions import assert_integer as assert_integer
from .static_assertions import assert_proper_iterable as assert_proper_iterable
from .static_assertions import assert_rank as assert_rank
from .static_assertions import assert_rank_at_least as assert_rank_at_least
from .static_assertions import assert_rank_in as assert_rank_in
from .static_assertions import assert_same_float_dtype as assert_same_float_dtype
from .static_assertions import assert_scalar as assert_scalar
from .static_assertions import assert_shapes as assert_shapes
from .static_assertions import assert_type as assert_type
from .static_assertions import is_numeric_tensor as is_numeric_tensor

__all__: list[str]

def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None: ...
def disable_check_numerics() -> None: ...
def get_log_device_placement() -> bool: ...
def set_log_device_placement(enabled: bool) -> None: ...
def enable_traceback_filtering() -> None: ...
def disable_traceback_filtering() -> None: ...
def is_traceback_filtering_enabled() -> bool: ...
