"""Weights in HDF5 files of Keras 3: .weights.h5, and the weights of a .keras archive.

Lives here: `WeightGroup`, a group of a file, checked; `assign_weights`, `weights_file`. Not here: .safetensors files
(weights_io.py), configurations of Keras (frontends/keras).

A file has a group for each layer of a model, `layers/NAME`: the class name in snake case, with a number from the second
layer of a class on. In it are the layer's own weights, `vars/0` and so on, and a group for each layer that is an
attribute of it, by the attribute's name; layers of `nn` have the attributes of Keras's. Subclasses of Model have their
layers as attributes, too. The state of an optimizer is in `optimizer/vars`.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.class_names import snake_case
from ..core.dtypes import bfloat16
from ..core.errors import DataLossError
from ..core.extras import optional_module
from .layer import Layer

OPTIMIZER = "optimizer"
MOST_RATIO = 2000
"""Most times that a member of a .keras file may be larger than it is compressed: constant weights reach 1,000."""
CLASSES = {"GroupQueryAttention": "GroupedQueryAttention"}
"""Classes that have another name in Keras, whatever it exports them as."""


CONTAINERS = (list, tuple, dict)
NOT_STORED = ("_constructor_arguments",)
"""Attributes whose layers have their path elsewhere."""


class WeightMismatchError(DataLossError, ValueError):
    """Raised for a weight of another shape than its layer's; Keras raises a ValueError."""


class WeightGroup:
    """A group of an HDF5 file of weights: members behind hard links only, which lie in the same file. path: its name,
    for errors."""

    def __init__(self, group: Any, path: str) -> None:
        self._group = group
        self.path = path

    def __iter__(self) -> Iterator[str]:
        with self._readable():
            return iter([name if isinstance(name, str) else repr(name) for name in self._group])

    def __contains__(self, path: object) -> bool:
        """Return whether there is a member behind hard links only: h5py's own test opens the files of external ones."""
        h5py = optional_module("h5py")
        member = self._group
        try:
            for part in str(path).split("/"):
                if not isinstance(member, h5py.Group) or not isinstance(member.get(part, getlink=True), h5py.HardLink):
                    return False
                member = member[part]
        except (KeyError, OSError, OverflowError, RuntimeError, ValueError):
            return False
        return True

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Return a context that raises DataLossError for what h5py raises on a damaged group."""
        try:
            yield
        except (KeyError, OSError, OverflowError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"the group {self.path or '/'} is damaged: {error}") from error

    def names(self, attribute: str) -> list[str] | None:
        """Return the texts of an attribute, which may be in several parts; None if there is none.

        raises DataLossError for other attributes
        """
        try:
            attributes = self._group.attrs
            parts = [attribute] if attribute in attributes else []
            while not parts or parts[0] != attribute:
                if f"{attribute}{len(parts)}" not in attributes:
                    break
                parts.append(f"{attribute}{len(parts)}")
            texts = [text for part in parts for text in np.asarray(attributes[part]).ravel().tolist()]
            decoded = [text.decode() if isinstance(text, bytes) else text for text in texts]
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"the attribute {attribute} of {self.path or '/'} is damaged: {error}") from error
        if not all(isinstance(text, str) for text in decoded):
            raise DataLossError(what=f"the attribute {attribute} of {self.path or '/'} has no names", found=decoded[:3])
        return decoded if parts else None

    def text(self, attribute: str) -> str | None:
        """Return an attribute that is one text, None if there is none. Raises DataLossError for others."""
        texts = self.names(attribute)
        return None if texts is None or len(texts) != 1 else texts[0]

    def group(self, name: str) -> WeightGroup:
        """Return a group in this one. Raises DataLossError if there is none."""
        return WeightGroup(self._member(name, "Group"), f"{self.path}/{name}")

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements of a dataset of a shape. Raises DataLossError for another one."""
        dataset = self._member(name, "Dataset")
        where = f"{self.path}/{name}"
        with self._readable():
            dtype, stored_shape = dataset.dtype, tuple(dataset.shape or ())
        if stored_shape != shape or dtype.kind not in "biufcV":
            raise WeightMismatchError(
                what=f"the weight {where} does not fit its layer: the shapes must match",
                found=f"{dtype}{list(stored_shape)}",
                wanted=list(shape),
            )
        if dataset.external or dataset.is_virtual:
            raise DataLossError(what=f"the weight {where} lies in another file")
        try:
            stored = np.asarray(dataset[()])
            dtype_name = dataset.attrs.get("dtype") if stored.dtype.kind == "V" else None
        except (OSError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"the weight {where} is damaged: {error}") from error
        if stored.dtype.kind != "V":
            return stored
        if dtype_name != "bfloat16" or stored.dtype.itemsize != 2:  # which HDF5 lacks: its bits, and its name
            raise DataLossError(
                what=f"the weight {where} has a dtype that is unknown", found=f"{stored.dtype}, {dtype_name}"
            )
        return stored.view(bfloat16.np)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all datasets of this group."""
        shapes = {name: tuple(self._member(name, "Dataset").shape or ()) for name in self}
        return {name: self.array(name, shape) for name, shape in shapes.items()}

    def _member(self, name: str, kind: str) -> Any:
        h5py = optional_module("h5py")
        where = f"{self.path}/{name}"
        try:
            link = self._group.get(name, getlink=True)
            member = self._group.get(name) if isinstance(link, h5py.HardLink) else None
        except (KeyError, OSError, OverflowError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"{where} is damaged: {error}") from error
        if not isinstance(member, getattr(h5py, kind)):
            members = ", ".join(list(self)[:5]) or "nothing"
            raise DataLossError(what=f"there is no {kind.lower()} {where}", found=members)
        return member


# ---- the layers of a file --------------------------------------------------------------------------------------------


def _groups(
    layer: Any, class_names: Mapping[str, str], path: str, visited: set[int], root: WeightGroup | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the path of each weight in a file, such as "layers/dense/vars/0"; arguments as for `layer_paths`. A layer
    with `save_own_variables` has a group of its own, "layers/table/vars"."""
    for prefix, each in layer_paths(layer, class_names, path, visited, root):
        if stores_itself(each):
            yield f"{prefix}vars", each
        else:
            for i, variable in enumerate(_own_weights(each)):
                yield f"{prefix}vars/{i}", variable


def layer_paths(
    layer: Any, class_names: Mapping[str, str], path: str, visited: set[int], root: WeightGroup | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the path of a layer in a file, and of those in it that have weights or files, such as "layers/dense/".

    class_names: of Keras, by the names of layers, where they differ from those of `nn`. visited: layers that have a
    path already, which Keras stores once. root: of the file that is read, which has one of the names of a layer with
    several.
    """
    if id(layer) in visited:
        return
    visited.add(id(layer))
    yield path, layer
    attributes = _attributes(layer)
    if getattr(layer, "is_model", False):
        if layer.has_layer_list:
            yield from _of_container(layer.layers, class_names, f"{path}layers/", visited, set(), root)
        else:  # a subclass: its list of layers has its place among the attributes
            attributes["layers"] = layer.layers
    for name, value in sorted(attributes.items(), key=lambda item: (item[0].startswith("_"), item[0])):
        if isinstance(value, Layer) and _has_state(value):
            others = [k for k, v in attributes.items() if v is value and k != name]
            if root is None or f"{path}{name}" in root or not any(f"{path}{other}" in root for other in others):
                yield from layer_paths(value, class_names, f"{path}{name}/", visited, root)
        elif isinstance(value, CONTAINERS):
            yield from _of_container(value, class_names, f"{path}{name}/", visited, set(), root)


def _attributes(layer: Any) -> dict[str, Any]:
    """Return the attributes of a layer, and what the properties of a user's class return."""
    attributes = {k: v for k, v in vars(layer).items() if k not in NOT_STORED}
    for cls in type(layer).__mro__:
        if cls.__module__.startswith(f"{__package__}."):
            break
        for name, member in vars(cls).items():
            if isinstance(member, property):
                try:
                    attributes.setdefault(name, getattr(layer, name))
                except Exception:
                    continue
    return attributes


def _of_container(
    container: Any,
    class_names: Mapping[str, str],
    path: str,
    visited: set[int],
    entered: set[int],
    root: WeightGroup | None,
) -> Iterator[tuple[str, Any]]:
    """Yield the weights of layers in a list, tuple or dictionary, nested or not. entered: containers on the way."""
    if id(container) in entered:
        return
    entered.add(id(container))
    seen: Counter[str] = Counter()
    for member in list(container.values()) if isinstance(container, dict) else container:
        if isinstance(member, CONTAINERS):
            name = "container"
        elif isinstance(member, Layer):
            name = class_names.get(member.name) or keras_class(member)
            name = snake_case(CLASSES.get(name, name))
        else:
            continue
        place = f"{path}{name}_{seen[name]}/" if seen[name] else f"{path}{name}/"
        seen[name] += 1
        if isinstance(member, CONTAINERS):
            yield from _of_container(member, class_names, place, visited, entered, root)
        elif _has_state(member):
            yield from layer_paths(member, class_names, place, visited, root)


def stores_itself(module: Any) -> bool:
    """Return whether a layer overrides `save_own_variables`."""
    return isinstance(module, Layer) and type(module).save_own_variables is not Layer.save_own_variables


def _has_state(layer: Any) -> bool:
    own = bool(layer.weights) or stores_itself(layer) or has_files(layer)
    return own or any(map(_has_state, layer._sublayers()))


def is_quantized(layer: Any) -> bool:
    """Return whether the kernel of a layer is quantized."""
    return getattr(layer, "quantization_mode", None) is not None


def has_files(layer: Any) -> bool:
    """Return whether a layer stores files, by `save_assets`."""
    return hasattr(layer, "save_assets") and hasattr(layer, "load_assets")


def keras_class(layer: Any) -> str:
    """Return the name of a layer's class in Keras."""
    own = type(layer).__name__
    return "Functional" if own == "Model" and layer.has_layer_list else own


def _own_weights(layer: Any) -> list[Any]:
    """Return the weights of a layer without those of layers in it, trainable ones first, as Keras stores them."""
    if getattr(layer, "lora_enabled", False) or is_quantized(layer):
        return list(layer.stored_weights())
    own = {id(v) for v in layer._own_variables()}
    return [v for v in layer.weights if id(v) in own]


def assign_weights(
    model: Any,
    class_names: Mapping[str, str],
    root: WeightGroup,
    skip_mismatch: bool = False,
    skip: Sequence[Layer] = (),
) -> None:
    """Assign the weights of a file to a model: all, or none if one does not fit. class_names: of Keras, by the names of
    layers. skip_mismatch: leave out weights that do not fit, with a warning. skip: layers that keep their weights.

    raises DataLossError for a weight that the file lacks or has in another shape
    """
    rows, stores, skipped = [], [], []
    for path, owner in _groups(model, class_names, "", set(map(id, skip)), root):
        *groups, name = path.split("/")
        try:
            group = root
            for i, member in enumerate(groups):
                if member not in group:
                    where = "/".join(groups[: i + 1])
                    raise WeightMismatchError(
                        what=f"the layer of {path} expected variables, but received 0 variables during loading: there "
                        f"is no group /{where}",
                        found=", ".join(list(group)[:5]) or "nothing",
                    )
                group = group.group(member)
            if isinstance(owner, Layer):
                stores.append((owner, group.group(name).arrays()))
                continue
            elements = group.array(name, tuple(owner.read_array().shape))
            of_codes = ("int8", "uint8")
            if (elements.dtype.name in of_codes) != (owner.dtype.name in of_codes) and elements.dtype.kind in "if":
                raise WeightMismatchError(
                    what=f"the weight {path} does not fit its layer: one of both is quantized",
                    found=elements.dtype.name,
                    wanted=owner.dtype.name,
                    do='quantize the model by `model.quantize("int8")` before, or make one that is not',
                )
            rows.append((owner, elements))
        except DataLossError:
            if not skip_mismatch:
                raise
            skipped.append(path)
    assign_arrays(rows, skipped)
    for layer, store in stores:
        layer.load_own_variables(store)


def open_weights(content: bytes, path: str) -> WeightGroup:
    """Return the root of a .weights.h5 file. Raises DataLossError, FailedPreconditionError without h5py."""
    h5py = optional_module("h5py")
    try:
        return WeightGroup(h5py.File(io.BytesIO(content), "r"), "")
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise DataLossError(what=f"{path} is not a file of weights, or is damaged: {error}") from error


def assign_optimizer(optimizer: Any, root: WeightGroup) -> None:
    """Assign the state of an optimizer that is built, if the file has one of as many variables."""
    if OPTIMIZER not in root:
        return
    group = root.group(OPTIMIZER).group("vars")
    if len(list(group)) != len(optimizer.variables):
        return
    rows = [(v, group.array(str(i), tuple(v.read_array().shape))) for i, v in enumerate(optimizer.variables)]
    for variable, array in rows:
        variable.assign(array.astype(variable.dtype.np))


def stored_arrays(layer: Layer) -> dict[str, np.ndarray]:
    """Return what `save_own_variables` of a layer stores. Raises TypeError for other objects than arrays."""
    store: dict[str, Any] = {}
    layer.save_own_variables(store)
    arrays = {}
    for key, value in store.items():
        arrays[key] = np.asarray(value.numpy() if hasattr(value, "numpy") else value, order="C")
        if arrays[key].dtype == object:
            raise TypeError(f"save_own_variables of {layer.name!r} stores {key!r}, which is not an array: {value!r}")
    return arrays


def _arrays(path: str, owner: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the array of a weight, or all that a layer stores of itself."""
    if isinstance(owner, Layer):
        yield from ((f"{path}/{key}", array) for key, array in stored_arrays(owner).items())
    else:
        yield path, np.asarray(owner.read_array())


def rows_of(model: Any, optimizer: Any = None, skip: Sequence[Layer] = ()) -> Iterator[tuple[str, np.ndarray]]:
    """Yield path and elements of each weight in a file, and of the state of an optimizer. skip: layers left out."""
    for path, owner in _groups(model, {}, "", set(map(id, skip))):
        yield from _arrays(path, owner)
    if optimizer is not None and optimizer.built:
        for i, variable in enumerate(optimizer.variables):
            yield from _arrays(f"{OPTIMIZER}/vars/{i}", variable)


def weights_file(model: Any, optimizer: Any = None, skip: Sequence[Layer] = ()) -> bytes:
    """Return a .weights.h5 file of a model's weights, as Keras 3 reads them, and the state of an optimizer.

    skip: layers left out. raises FailedPreconditionError without h5py
    """
    return file_of(rows_of(model, optimizer, skip))


def file_of(rows: Iterable[tuple[str, np.ndarray]]) -> bytes:
    """Return an HDF5 file of arrays by path."""
    h5py = optional_module("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for path, array in rows:
            if array.dtype.kind == "V":  # bfloat16, which HDF5 lacks: its bits, and its name
                dataset = file.create_dataset(path, data=array.view("V2"))
                dataset.attrs["dtype"] = array.dtype.name
            else:
                file.create_dataset(path, data=array)
    return buffer.getvalue()


def assign_arrays(rows: Sequence[tuple[Any, np.ndarray]], skipped: Sequence[str]) -> None:
    """Assign arrays to variables; warn of the names of skipped ones."""
    if skipped:
        warnings.warn(f"Weights that do not fit the model are not loaded: {', '.join(skipped)}", stacklevel=5)
    for variable, array in rows:
        variable.assign(array.astype(variable.dtype.np))
