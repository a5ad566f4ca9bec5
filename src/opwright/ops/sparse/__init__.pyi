from ..strings.crosses import sparse_cross, sparse_cross_hashed
from .combinations import bincount as bincount
from .combinations import mask as mask
from .combinations import maximum as maximum
from .combinations import minimum as minimum
from .combinations import segment_mean as segment_mean
from .combinations import segment_sqrt_n as segment_sqrt_n
from .combinations import segment_sum as segment_sum
from .combinations import softmax as softmax
from .combinations import split as split
from .functions import add as add
from .functions import concat as concat
from .functions import expand_dims as expand_dims
from .functions import eye as eye
from .functions import fill_empty_rows as fill_empty_rows
from .functions import from_dense as from_dense
from .functions import map_values as map_values
from .functions import reduce_max as reduce_max
from .functions import reduce_sum as reduce_sum
from .functions import reorder as reorder
from .functions import reset_shape as reset_shape
from .functions import reshape as reshape
from .functions import retain as retain
from .functions import sampled_addmm as sampled_addmm
from .functions import slice as slice
from .functions import sparse_dense_matmul as sparse_dense_matmul
from .functions import to_dense as to_dense
from .functions import to_indicator as to_indicator
from .functions import transpose as transpose
from .sparse_tensor import SparseTensor as SparseTensor
from .sparse_tensor import SparseTensorSpec as SparseTensorSpec

cross = sparse_cross
cross_hashed = sparse_cross_hashed
