from ..strings.crosses import ragged_cross, ragged_cross_hashed
from .functions import boolean_mask as boolean_mask
from .functions import constant as constant
from .functions import map_flat_values as map_flat_values
from .functions import range as range
from .functions import row_splits_to_segment_ids as row_splits_to_segment_ids
from .functions import segment_ids_to_row_splits as segment_ids_to_row_splits
from .functions import stack as stack
from .functions import stack_dynamic_partitions as stack_dynamic_partitions
from .ragged_tensor import RaggedTensor as RaggedTensor
from .ragged_tensor import RaggedTensorSpec as RaggedTensorSpec

cross = ragged_cross
cross_hashed = ragged_cross_hashed
