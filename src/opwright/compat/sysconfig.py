"""`ow.sysconfig`: how the package was built.

Lives here: `get_build_info`.  Not here: processors (`opwright doctor`).
"""

from __future__ import annotations

from typing import Any

__all__ = ["get_build_info"]


def get_build_info() -> dict[str, Any]:
    """Return a dictionary of what the package was built for: neither CUDA nor ROCm nor TensorRT.

    >>> ow.sysconfig.get_build_info()["is_cuda_build"]
    False
    """
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}
