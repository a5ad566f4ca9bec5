"""`ow.config`: switches and devices as functions, under TensorFlow's names.

Lives here: the functions, the one physical device, settings of other devices that programs name.
Not here: the switches (core/flags.py).

Operators run on one CPU. Functions about GPUs find none, as TensorFlow does on a machine without one; settings that
have no meaning here are kept and returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core import flags
from ..core.errors import InvalidArgumentError
from ..core.named_tuples import NamedTuple

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Set whether calls of a `function` run its Python code directly, without tracing; for debugging."""
    flags.configure(run_functions_eagerly=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Return the setting of `run_functions_eagerly`."""
    return flags.run_functions_eagerly


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly  # older names


# ---- devices -------------------------------------------------------------------------------------------------------


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as operators name it."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """Limits of a logical device. memory_limit: MB of a GPU; experimental_*: of GPUs, too."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_LOGICAL_CPU = LogicalDevice("/device:CPU:0", "CPU")
_SETTINGS: dict[str, Any] = {
    "configurations": None,
    "soft_device_placement": True,
    "inter_op_threads": 0,
    "tensor_float_32": True,
    "synchronous": True,
    "policy": "silent",
}


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of a type, or all: one CPU.

    >>> ow.config.list_physical_devices("GPU")
    []
    """
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices that operators run on, of a type or all: one CPU."""
    return [_LOGICAL_CPU] if device_type in (None, "CPU") else []


get_visible_devices = list_physical_devices


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Set which devices operators may run on.

    raises ValueError for devices that are none of `list_physical_devices`, and for hiding the CPU
    """
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    for device in chosen:
        if device != _CPU:
            raise ValueError(f"Unrecognized device: {device!r}; there are {list_physical_devices()}")
        if device_type not in (None, device.device_type):
            raise ValueError(f"Device {device.name} is not a {device_type}")
    if device_type in (None, "CPU") and not chosen:
        raise ValueError("the CPU cannot be hidden: it is the only device that runs operators")


def set_soft_device_placement(enabled: bool) -> None:
    """Set whether operators without a kernel for their device run on another. All devices are the CPU: kept."""
    _SETTINGS["soft_device_placement"] = bool(enabled)


def get_soft_device_placement() -> bool:
    """Return the setting of `set_soft_device_placement`."""
    return bool(_SETTINGS["soft_device_placement"])


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Set the logical devices of a physical one.

    raises ValueError for several: one CPU runs all operators, and workers of ow.distribute are processes
    """
    _check_cpu(device)
    if len(logical_devices) > 1:
        raise ValueError(
            f"{len(logical_devices)} logical devices of {device.name}: there is one; to train on several workers, "
            "use ow.distribute"
        )
    _SETTINGS["configurations"] = list(logical_devices)


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """Return the setting of `set_logical_device_configuration`."""
    _check_cpu(device)
    configurations: list[LogicalDeviceConfiguration] | None = _SETTINGS["configurations"]
    return configurations


def _check_cpu(device: Any) -> None:
    if device != _CPU:
        raise ValueError(f"Unrecognized device: {device!r}; there are {list_physical_devices()}")


class threading:
    """`ow.config.threading`."""

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Set the threads of one operator, 0 for one a processor: the flag `num_threads`."""
        flags.configure(num_threads=num_threads)

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """Return the threads of one operator."""
        return flags.num_threads

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Set how many independent operators may run at a time. They run one after another: kept."""
        if not isinstance(num_threads, int) or num_threads < 0:
            raise InvalidArgumentError(
                op="set_inter_op_parallelism_threads", what="no count", found=repr(num_threads), wanted="0 or more"
            )
        _SETTINGS["inter_op_threads"] = num_threads

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """Return the setting of `set_inter_op_parallelism_threads`."""
        return int(_SETTINGS["inter_op_threads"])


class optimizer:
    """`ow.config.optimizer`."""

    @staticmethod
    def set_jit(enabled: bool | str) -> None:
        """Set whether functions that leave jit_compile open are compiled: the flag `jit`. "autoclustering": on."""
        flags.configure(jit=bool(enabled))

    @staticmethod
    def get_jit() -> str:
        """Return "autoclustering" or "", as TensorFlow."""
        return "autoclustering" if flags.jit else ""

    @staticmethod
    def set_experimental_options(options: dict[str, bool]) -> None:
        """Set options of TensorFlow's graph optimizer, which is not used here: kept."""
        _OPTIONS.update(options)

    @staticmethod
    def get_experimental_options() -> dict[str, bool]:
        """Return the options of `set_experimental_options`."""
        return dict(_OPTIONS)


_OPTIONS: dict[str, bool] = {}


class experimental:
    """`ow.config.experimental`."""

    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    get_virtual_device_configuration = staticmethod(get_logical_device_configuration)
    get_visible_devices = staticmethod(get_visible_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    list_physical_devices = staticmethod(list_physical_devices)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)
    set_visible_devices = staticmethod(set_visible_devices)

    @staticmethod
    def enable_op_determinism() -> None:
        """Produce the same bits in every run, at the cost of speed; random operators then require a seed.

        Sets the flag `deterministic`; `opwright doctor` and docs/operators.md list its effects.
        """
        flags.configure(deterministic=True)

    @staticmethod
    def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
        """Set whether a GPU's memory is taken as it is needed. Raises ValueError for the CPU, as TensorFlow."""
        _check_cpu(device)
        raise ValueError("Cannot set memory growth on non-PluggableDevice CPU: its memory is taken as it is needed")

    @staticmethod
    def get_memory_growth(device: PhysicalDevice) -> bool:
        """Return the setting of a GPU. Raises ValueError for the CPU."""
        _check_cpu(device)
        raise ValueError("Cannot query memory growth on CPU devices")

    @staticmethod
    def get_memory_info(device: str) -> dict[str, int]:
        """Return the use of a GPU's memory. Raises ValueError for other devices, as TensorFlow."""
        raise ValueError(f"no statistics of an allocator are available for device {device!r}")

    @staticmethod
    def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
        """Return details of a GPU; of the CPU an empty dictionary, as TensorFlow."""
        _check_cpu(device)
        return {}

    @staticmethod
    def enable_tensor_float_32_execution(enabled: bool) -> None:
        """Set whether GPUs may round float32 operands of products to 10 bits; the CPU never does: kept."""
        _SETTINGS["tensor_float_32"] = bool(enabled)

    @staticmethod
    def tensor_float_32_execution_enabled() -> bool:
        """Return the setting of `enable_tensor_float_32_execution`."""
        return bool(_SETTINGS["tensor_float_32"])

    @staticmethod
    def set_synchronous_execution(enable: bool) -> None:
        """Set whether eager calls return when they are finished; they always do: kept."""
        _SETTINGS["synchronous"] = bool(enable)

    @staticmethod
    def get_synchronous_execution() -> bool:
        """Return the setting of `set_synchronous_execution`."""
        return bool(_SETTINGS["synchronous"])

    @staticmethod
    def set_device_policy(device_policy: str | None) -> None:
        """Set what happens to operands on another device; there is one device: kept. Raises ValueError for others."""
        policies: Iterable[str | None] = (None, "silent", "silent_for_int32", "warn", "explicit")
        if device_policy not in policies:
            raise ValueError(f"Invalid policy {device_policy!r}; there are {', '.join(map(str, policies))}")
        _SETTINGS["policy"] = device_policy or "silent"

    @staticmethod
    def get_device_policy() -> str:
        """Return the setting of `set_device_policy`."""
        return str(_SETTINGS["policy"])
