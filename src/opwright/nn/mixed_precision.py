"""`keras.mixed_precision`: policies of dtypes and loss scaling, under the names of TensorFlow 2.

Lives here: the names.  Not here: their definitions (dtype_policies.py, optimizers/loss_scale.py).
"""

from ..optimizers import LossScaleOptimizer
from .dtype_policies import DTypePolicy, dtype_policy, set_dtype_policy

Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy

__all__ = [
    "DTypePolicy",
    "LossScaleOptimizer",
    "Policy",
    "dtype_policy",
    "global_policy",
    "set_dtype_policy",
    "set_global_policy",
]
