"""Policies of dtypes: in which dtype layers compute and in which they keep weights. `keras.mixed_precision`.

Lives here: `DTypePolicy`, `DTypePolicyMap`, the global policy, `AutocastVariable`.
Not here: casts of a layer's inputs (layer.py), loss scaling (optimizers/loss_scale.py).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.dtypes import DType, as_dtype
from ..eager.variable import Variable
from ..ops import array, dispatch
from . import backend
from .layer_calls import current

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

__all__ = [
    "AWQDTypePolicy",
    "DTypePolicy",
    "DTypePolicyMap",
    "FloatDTypePolicy",
    "GPTQDTypePolicy",
    "Int4DTypePolicy",
    "QuantizedDTypePolicy",
    "QuantizedFloat8DTypePolicy",
    "deserialize",
    "get",
    "serialize",
]

MIXED = "mixed_"


class DTypePolicy:
    """A policy by name.

    name: a dtype for computation and weights, or "mixed_float16", "mixed_bfloat16": these dtypes for the computation,
    float32 for weights; the global policy by default.
    raises TypeError if it is not text, ValueError for unknown ones
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = dtype_policy().name
        if not isinstance(name, str):
            raise TypeError(
                f"'name' must be a string, such as 'mixed_float16'. Received: name={name} (of type {type(name)})"
            )
        self._name = name
        try:
            dtype = as_dtype(name.removeprefix(MIXED))
        except (TypeError, ValueError):
            dtype = None
        if dtype is None or (name.startswith(MIXED) and dtype.name not in ("float16", "bfloat16")):
            raise ValueError(
                f"Cannot convert '{name}' to a mixed precision DTypePolicy. Valid policies include 'mixed_float16', "
                "'mixed_bfloat16', and the name of any float dtype such as 'float32'."
            )
        self._compute_dtype = dtype.name
        self._variable_dtype = "float32" if name.startswith(MIXED) else dtype.name

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """Name of the dtype in which layers compute, and to which they cast floating inputs."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """Name of the dtype of weights."""
        return self._variable_dtype

    @property
    def quantization_mode(self) -> str | None:
        """None, but of a `QuantizedDTypePolicy`."""
        return None

    def convert_input(self, x: Any, autocast: bool, dtype: Any) -> Any:
        """Return a floating tensor or array cast to a dtype if autocast; anything else as it is."""
        target = as_dtype(dtype)
        if not hasattr(x, "dtype") and not hasattr(x, "__array__"):
            return x
        tensor = dispatch.to_tensor(x)
        return array.cast(tensor, target) if autocast and tensor.dtype.is_floating else tensor

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        """Return a policy with these arguments."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{self._name}">'


FloatDTypePolicy = DTypePolicy
MODES = ("int8", "int4", "float8", "gptq", "awq")
"""How layers quantize their weights."""
FROM = "_from_"
GPTQ_BITS = (2, 3, 4, 8)
"""Sizes of a weight."""


class QuantizedDTypePolicy(DTypePolicy):
    """The policy of layers with quantized weights, such as "int8_from_float32".

    mode: of MODES. source_name: the policy of the rest, by default the global one.
    raises ValueError for other modes, and int8 with float16
    """

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        super().__init__(source_name)
        if mode not in MODES:
            raise ValueError(f"Invalid quantization mode. Expected one of {MODES}. Received: mode={mode}")
        if self._compute_dtype == "float16" and mode == "int8":
            raise ValueError(f"Quantization mode='{mode}' doesn't work well with compute_dtype='float16'.")
        self._mode, self._source_name = mode, self._name
        self._name = f"{mode}{FROM}{self._source_name}"

    @property
    def quantization_mode(self) -> str | None:
        """The mode."""
        return self._mode

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"mode": self._mode, "source_name": self._source_name}


class QuantizedFloat8DTypePolicy(QuantizedDTypePolicy):
    """The policy of layers whose products are of float8. amax_history_length: how many steps a scale follows.

    raises TypeError for another length than an integer
    """

    default_amax_history_length = 1024

    def __init__(
        self, mode: str, source_name: str | None = None, amax_history_length: int = default_amax_history_length
    ) -> None:
        super().__init__(mode, source_name)
        if not isinstance(amax_history_length, int):
            raise TypeError(
                f"`amax_history_length` must be an integer. Received: amax_history_length={amax_history_length}"
            )
        self.amax_history_length = amax_history_length

    def __eq__(self, other: object) -> bool:
        length = getattr(other, "amax_history_length", None)
        return super().__eq__(other) and self.amax_history_length == length

    __hash__ = DTypePolicy.__hash__

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "amax_history_length": self.amax_history_length}


class Int4DTypePolicy(QuantizedDTypePolicy):
    """The policy of layers with weights of 4 bits. mode: "int4/128", with the rows of a block; -1: one scale a channel.

    raises ValueError for another form
    """

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        base, _, size = mode.partition("/")
        if base != "int4" or not size or "/" in size:
            raise ValueError(
                f"Invalid mode for Int4DTypePolicy. Expected format 'int4/<block_size>', but got '{mode}'."
            )
        try:
            self.block_size = int(size)
        except ValueError:
            raise ValueError(
                "Invalid mode for Int4DTypePolicy. <block_size> must be an integer. Expected format "
                f"'int4/<block_size>', but got '{mode}'."
            ) from None
        if self.block_size < -1 or self.block_size == 0:
            raise ValueError(
                "Invalid block_size in mode. Supported values are -1 (per-channel) or a positive integer "
                f"(sub-channel), but got {self.block_size} from '{mode}'."
            )
        super().__init__(base, source_name)
        self._name = f"{mode}{FROM}{self._source_name}"
        self.mode = base

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "mode": f"{self.mode}/{self.block_size}"}


class GPTQDTypePolicy(QuantizedDTypePolicy):
    """The policy of layers whose weights GPTQ chose. mode: "gptq/4/128": bits, and inputs of a group; -1: one group.

    raises ValueError for another form
    """

    kind: ClassVar[str] = "gptq"
    bits: ClassVar[tuple[int, ...]] = GPTQ_BITS

    def __init__(self, mode: str, source_name: str | None = None) -> None:
        base, *numbers = mode.split("/")
        form, name = f"'{self.kind}/<weight_bits>/<group_size>'", type(self).__name__
        if base != self.kind or len(numbers) != 2:
            raise ValueError(f"Invalid mode for {name}. Expected format {form}, but got '{mode}'.")
        try:
            self.weight_bits, self.group_size = map(int, numbers)
        except ValueError:
            raise ValueError(
                f"Invalid mode for {name}. <weight_bits> and <group_size> must be integers. Expected format {form}, "
                f"but got '{mode}'."
            ) from None
        if self.weight_bits not in self.bits:
            supported = " and ".join(map(str, self.bits))
            raise ValueError(
                f"Invalid weight_bits in mode. {self.kind.upper()} only supports {supported}-bit quantization, but got "
                f"{self.weight_bits} from '{mode}'."
            )
        if self.group_size < -1 or self.group_size == 0:
            raise ValueError(
                "Invalid group_size in mode. Supported values are -1 (whole-tensor) or a positive integer, but got "
                f"{self.group_size} from '{mode}'."
            )
        super().__init__(base, source_name)
        self._name = f"{mode}{FROM}{self._source_name}"
        self.mode = base

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "mode": f"{self.mode}/{self.weight_bits}/{self.group_size}"}


class AWQDTypePolicy(GPTQDTypePolicy):
    """The policy of layers whose weights AWQ chose. mode: "awq/4/128": 4 bits, and inputs of a group; -1: one group.

    raises ValueError for another form
    """

    kind = "awq"
    bits = (4,)


def _of_name(name: str) -> QuantizedDTypePolicy:
    """Return the quantized policy of a name. Raises ValueError for another form."""
    mode, separator, source = name.partition(FROM)
    if not separator or FROM in source:
        raise ValueError(
            "Cannot convert `policy` into a valid pair (`mode`, `source_name`) to instantiate `QuantizedDTypePolicy`. "
            f"Received: policy={name}"
        )
    if mode.startswith("float8"):
        return QuantizedFloat8DTypePolicy(mode, source)
    if mode.startswith(("gptq", "awq")):
        return (GPTQDTypePolicy if mode.startswith("gptq") else AWQDTypePolicy)(mode, source)
    return (Int4DTypePolicy if "/" in mode else QuantizedDTypePolicy)(mode, source)


class DTypePolicyMap(DTypePolicy, MutableMapping[str, DTypePolicy]):
    """Policies of the layers of a model by their paths, or by regular expressions of them, and one for the others.

    default_policy: of paths that the map lacks, by name or as a policy; by default the global one at that time
    raises ValueError for a map as default, TypeError for others than dictionaries
    """

    def __init__(self, default_policy: Any = None, policy_map: dict[str, Any] | None = None) -> None:
        if isinstance(default_policy, DTypePolicyMap):
            raise ValueError("`default_policy` cannot be a `DTypePolicyMap`.")
        if policy_map is not None and not isinstance(policy_map, dict):
            raise TypeError(
                f"If specified, `policy_map` must be a dict. Received: policy_map={policy_map} of type "
                f"{type(policy_map)}"
            )
        self._default = None if default_policy is None else get(default_policy)
        self._map = {key: get(policy) for key, policy in (policy_map or {}).items()}

    default_policy = property(lambda self: dtype_policy() if self._default is None else self._default)
    name = property(lambda self: f"map_{self.default_policy.name}")
    compute_dtype = property(lambda self: self.default_policy.compute_dtype)
    variable_dtype = property(lambda self: self.default_policy.variable_dtype)
    quantization_mode = property(lambda self: self.default_policy.quantization_mode)

    def __getitem__(self, key: str) -> DTypePolicy:
        if key in self._map:
            return self._map[key]
        matches = [pattern for pattern in self._map if re.fullmatch(pattern, key)]
        if len(matches) > 1:
            raise ValueError(
                f"Path '{key}' matches multiple dtype policy specification keys: {matches}. Please make sure each path "
                "only matches at most one dtype policy specification key in the DTypePolicyMap."
            )
        policy: DTypePolicy = self._map[matches[0]] if matches else self.default_policy
        return policy

    def __setitem__(self, key: str, policy: Any) -> None:
        if key in self._map:
            raise ValueError(
                f"{key} already exist in the DTypePolicyMap with value {self._map[key]}. Please make sure to not use "
                "duplicated keys."
            )
        try:
            self._map[key] = get(policy)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "Cannot interpret the assigned value by `keras.dtype_policies.get`. Received: "
                f"{policy} of type {type(policy)}"
            ) from error

    def __delitem__(self, key: str) -> None:
        del self._map[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._map)

    def __len__(self) -> int:
        return len(self._map)

    def __contains__(self, key: object) -> bool:
        return key in self._map

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {
            "default_policy": None if self._default is None else serialize(self._default),
            "policy_map": {key: serialize(policy) for key, policy in self._map.items()},
        }

    def __repr__(self) -> str:
        mapping = [(key, policy.name) for key, policy in self._map.items()]
        return f"<DTypePolicyMap at {hex(id(self))} default_policy={self.default_policy.name}, mapping={mapping}>"


_GLOBAL: list[DTypePolicy] = []  # empty: floatx


def dtype_policy() -> DTypePolicy:
    """Return the policy of layers that have none of their own; `floatx` unless it was set."""
    return _GLOBAL[0] if _GLOBAL else DTypePolicy(backend.floatx())


def set_dtype_policy(policy: Any) -> None:
    """Set the policy of layers created from now on, by name or as a policy; None for that of `floatx`."""
    _GLOBAL[:] = [] if policy is None else [get(policy)]


def get(identifier: Any) -> DTypePolicy:
    """Return the policy for a name, a dtype, a dictionary, a policy or None, the global one."""
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str) and identifier.startswith(MODES):
        return _of_name(identifier)
    try:
        return DTypePolicy(identifier if isinstance(identifier, str) else as_dtype(identifier).name)
    except TypeError as error:
        raise ValueError(
            "Cannot interpret `dtype` argument. Expected a string or an instance of DTypePolicy. Received: "
            f"dtype={identifier}"
        ) from error


def compute_dtype_of(dtype: Any) -> DType:
    """Return the dtype in which a loss or metric computes: a dtype, or that of a policy; None: `floatx`."""
    return as_dtype(get(backend.floatx() if dtype is None else dtype).compute_dtype)


def serialize(policy: DTypePolicy) -> dict[str, Any]:
    """Return a policy as a dictionary of its class and arguments, as Keras writes it."""
    return {
        "module": "keras",
        "class_name": type(policy).__name__,
        "config": policy.get_config(),
        "registered_name": None,
    }


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> DTypePolicy:
    """Return the policy of a dictionary. Raises ValueError for other classes: those of quantized layers of Keras."""
    name = config.get("class_name", "DTypePolicy")
    classes: dict[str, type[DTypePolicy]] = {
        "DTypePolicy": DTypePolicy,
        "FloatDTypePolicy": DTypePolicy,
        "DTypePolicyMap": DTypePolicyMap,
        "QuantizedDTypePolicy": QuantizedDTypePolicy,
        "QuantizedFloat8DTypePolicy": QuantizedFloat8DTypePolicy,
        "Int4DTypePolicy": Int4DTypePolicy,
        "GPTQDTypePolicy": GPTQDTypePolicy,
        "AWQDTypePolicy": AWQDTypePolicy,
    }
    if name not in classes:
        raise ValueError(f"no policy of class {name!r}; there are {', '.join(classes)}; ow.lite quantizes models")
    return classes[name].from_config(config.get("config", config))


_STORED: Any = vars(Variable)["dtype"]  # the slot


class AutocastVariable(Variable):
    """A weight of a layer that computes in another dtype: inside its `call` it is read in that dtype, which `dtype`
    then is.

    Layers of this package cast their weights themselves, where it helps; this is for those of users.
    """

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The dtype in which the weight is read."""
        stored: DType = _STORED.__get__(self)
        return stored if current.autocast is None or not stored.is_floating else current.autocast

    @dtype.setter
    def dtype(self, dtype: DType) -> None:
        _STORED.__set__(self, dtype)

    def value(self) -> Tensor:
        """Return the value as a tensor, in the dtype of the layer that is being called, and record the read."""
        with _stored_dtype() as dtype:
            tensor = Variable.value(self)
            return tensor if dtype is None or not tensor.dtype.is_floating else array.cast(tensor, dtype)

    read_value = value

    def _update(self, op: Any, value: Any, use: str) -> Variable:
        with _stored_dtype():
            dtype = getattr(value, "dtype", None)
            if isinstance(dtype, DType) and dtype is not self.dtype:
                value = array.cast(value, self.dtype)
            return super()._update(op, value, use)


@contextlib.contextmanager
def _stored_dtype() -> Iterator[DType | None]:
    """Return a context in which weights have the dtype of their memory; the dtype in which they are read outside."""
    dtype, current.autocast = current.autocast, None
    try:
        yield dtype
    finally:
        current.autocast = dtype
