"""`keras.utils.FeatureSpace`: columns of a table as one vector, by a preprocessing layer for each.

Lives here: the class, kinds of columns, crosses.  Not here: the layers (layers/categories.py, index_lookup.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import nest
from ..data import Dataset
from ..ops import array, dispatch
from . import model_config
from .configuration import fresh
from .layers import (
    CategoryEncoding,
    Discretization,
    HashedCrossing,
    Hashing,
    Identity,
    IntegerLookup,
    Normalization,
    Rescaling,
    StringLookup,
)
from .model import Model
from .network import Input

_VECTORS = "concat", "dict"


def _check(value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(
            f"Invalid value for argument `output_mode`. Expected one of {allowed}. Received: output_mode={value}"
        )
    return value


class TableColumn:
    """A column: the dtype of its values, the layer that encodes them, and as what: "float", "int" or "one_hot"."""

    def __init__(self, dtype: str, preprocessor: Any, output_mode: str) -> None:
        self.dtype, self.output_mode = dtype, _check(output_mode, ("int", "one_hot", "float"))
        self.preprocessor = model_config.deserialize(preprocessor) if isinstance(preprocessor, dict) else preprocessor

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        layer = model_config.serialize(self.preprocessor)
        return {"dtype": self.dtype, "preprocessor": layer, "output_mode": self.output_mode}


class ColumnCross:
    """Columns whose combinations are hashed to crossing_dim numbers, as "one_hot" vectors or "int"."""

    def __init__(self, feature_names: Iterable[str], crossing_dim: int, output_mode: str = "one_hot") -> None:
        self.feature_names, self.crossing_dim = tuple(feature_names), crossing_dim
        self.output_mode = _check(output_mode, ("int", "one_hot"))

    @property
    def name(self) -> str:
        """The names of the columns, joined."""
        return "_X_".join(self.feature_names)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {
            "feature_names": list(self.feature_names),
            "crossing_dim": self.crossing_dim,
            "output_mode": self.output_mode,
        }


class FeatureSpace(Model):
    """A dictionary of columns as one vector, or as a dictionary of vectors.

    features: a kind for each column, by name: "float", "float_normalized", "float_rescaled", "float_discretized",
    "integer_categorical", "string_categorical", "integer_hashed", "string_hashed", or the result of the class method of
    that name; or `feature`, with any layer. output_mode: "concat" or "dict". crosses: tuples of columns, or results of
    `cross`. crossing_dim, hashing_dim, num_discretization_bins: sizes of crosses, hashed columns and discretized ones.

    `adapt(dataset)` fits the layers to data; then calls, also in `Dataset.map`, encode dictionaries of columns [batch]
    or [batch, 1], or of single values. Vectors follow the names of columns, sorted, then those of crosses.
    raises ValueError for unknown kinds and columns
    """

    def __init__(
        self,
        features: dict[str, Any],
        output_mode: str = "concat",
        crosses: Any = None,
        crossing_dim: int = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not features:
            raise ValueError("The `features` argument cannot be None or empty.")
        if crosses and not crossing_dim:
            raise ValueError(f"With `crosses`, `crossing_dim` is a positive integer. Received: {crossing_dim}")
        self.crossing_dim, self.hashing_dim = crossing_dim, hashing_dim
        self.num_discretization_bins, self.output_mode = num_discretization_bins, _check(output_mode, _VECTORS)
        self.features = {key: self._feature(key, value) for key, value in features.items()}
        self.crosses = [self._cross(value) for value in crosses or ()]
        self.preprocessors = {key: feature.preprocessor for key, feature in self.features.items()}
        self.crossers = {cross.name: HashedCrossing(cross.crossing_dim, name=cross.name) for cross in self.crosses}
        self._encoders: dict[str, CategoryEncoding] = {}
        self._adapted = not self._adaptable()
        self._inputs: dict[str, Any] | None = None
        self._encoded: Any = None

    # ---- kinds of columns -------------------------------------------------------------------------------------------

    @classmethod
    def cross(cls, feature_names: Iterable[str], crossing_dim: int, output_mode: str = "one_hot") -> ColumnCross:
        """Return a cross of columns."""
        return ColumnCross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype: str, preprocessor: Any, output_mode: str) -> TableColumn:
        """Return a column that a layer encodes."""
        return TableColumn(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name: str | None = None) -> TableColumn:
        """Return a column of numbers as they are."""
        return TableColumn("float32", Identity(dtype="float32", name=_layer_name("float", name)), "float")

    @classmethod
    def float_rescaled(cls, scale: Any = 1.0, offset: Any = 0.0, name: str | None = None) -> TableColumn:
        """Return a column of numbers times scale, plus offset."""
        return TableColumn("float32", Rescaling(scale, offset, name=_layer_name("float_rescaled", name)), "float")

    @classmethod
    def float_normalized(cls, name: str | None = None) -> TableColumn:
        """Return a column of numbers less their mean, divided by their standard deviation."""
        return TableColumn("float32", Normalization(axis=-1, name=_layer_name("float_normalized", name)), "float")

    @classmethod
    def float_discretized(
        cls, num_bins: int, bin_boundaries: Any = None, output_mode: str = "one_hot", name: str | None = None
    ) -> TableColumn:
        """Return a column of numbers as the intervals that contain them."""
        bins = {"bin_boundaries": bin_boundaries} if bin_boundaries is not None else {"num_bins": num_bins}
        return TableColumn("float32", Discretization(name=_layer_name("float_discretized", name), **bins), output_mode)

    @classmethod
    def integer_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> TableColumn:
        """Return a column of integers, each of which stands for a category."""
        layer = IntegerLookup(max_tokens, num_oov_indices, name=_layer_name("integer_categorical", name))
        return TableColumn("int32", layer, output_mode)

    @classmethod
    def string_categorical(
        cls,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        output_mode: str = "one_hot",
        name: str | None = None,
    ) -> TableColumn:
        """Return a column of texts, each of which stands for a category."""
        layer = StringLookup(max_tokens, num_oov_indices, name=_layer_name("string_categorical", name))
        return TableColumn("string", layer, output_mode)

    @classmethod
    def string_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> TableColumn:
        """Return a column of texts, by their hashes."""
        return TableColumn("string", Hashing(num_bins, name=_layer_name("string_hashed", name)), output_mode)

    @classmethod
    def integer_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> TableColumn:
        """Return a column of integers, by their hashes."""
        return TableColumn("int32", Hashing(num_bins, name=_layer_name("integer_hashed", name)), output_mode)

    def _feature(self, name: str, kind: Any) -> TableColumn:
        if isinstance(kind, TableColumn):
            return kind
        if isinstance(kind, dict):
            return TableColumn(**kind.get("config", kind))
        sizes: dict[str, tuple[int, ...]] = {
            "float_discretized": (self.num_discretization_bins,),
            "integer_hashed": (self.hashing_dim,),
            "string_hashed": (self.hashing_dim,),
        }
        if kind not in KINDS:
            raise ValueError(f"Invalid feature type: {kind}; there are {', '.join(KINDS)}")
        feature: TableColumn = getattr(self, kind)(*sizes.get(kind, ()), name=name)
        return feature

    def _cross(self, value: Any) -> ColumnCross:
        cross: ColumnCross = value
        if isinstance(value, dict):
            cross = ColumnCross(**value.get("config", value))
        elif not isinstance(value, ColumnCross):
            cross = ColumnCross(value, self.crossing_dim)
        unknown = [key for key in cross.feature_names if key not in self.features]
        if unknown:
            raise ValueError(
                "All features referenced in the `crosses` argument should be present in the `features` dict. Received "
                f"unknown features: {unknown}"
            )
        return cross

    # ---- fitting ----------------------------------------------------------------------------------------------------

    def _adaptable(self) -> list[str]:
        def fits(layer: Any) -> bool:
            if isinstance(layer, Normalization):
                return layer.get_config().get("mean") is None
            if isinstance(layer, Discretization):
                return layer.get_config().get("bin_boundaries") is None
            lookup = getattr(layer, "_lookup_layer", layer)
            known = getattr(layer, "vocabulary", None) is not None or getattr(lookup, "_has_input_vocabulary", False)
            return hasattr(layer, "adapt") and not known

        return [name for name, layer in self.preprocessors.items() if fits(layer)]

    def adapt(self, dataset: Any) -> None:
        """Fit the layers to a dataset of dictionaries of columns, batched or not, or to such a dictionary of arrays."""
        if isinstance(dataset, dict):
            dataset = Dataset.from_tensor_slices(dataset)
        if not isinstance(dataset, Dataset):
            raise ValueError(
                "`adapt()` can only be called on a Dataset or a dict of arrays or lists. Received instead: "
                f"{type(dataset).__name__}"
            )
        for name in self._adaptable():
            column: Any = dataset.map(_column(name))
            rank = column.element_spec.shape.rank
            if rank == 0:
                column = column.batch(32)
            if rank in (0, 1):
                column = column.map(_expanded)
            self.preprocessors[name].adapt(column)
        self._adapted = True

    def _check_adapted(self) -> None:
        if not self._adapted:
            raise ValueError("You need to call `.adapt(dataset)` on the FeatureSpace before you can start using it.")

    # ---- encoding ---------------------------------------------------------------------------------------------------

    def get_inputs(self) -> dict[str, Any]:
        """Return symbolic inputs of the columns, for a functional model that takes raw columns."""
        self._check_adapted()
        if self._inputs is None:
            self._inputs = {
                name: Input(shape=(1,), dtype=feature.dtype, name=name) for name, feature in self.features.items()
            }
        return self._inputs

    def get_encoded_features(self) -> Any:
        """Return the symbolic encoding of `get_inputs`, the input of a functional model's other layers."""
        if self._encoded is None:
            self._encoded = self._encode(self.get_inputs())
        return self._encoded

    def __call__(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Encode a dictionary of columns, or of single values. Raises ValueError before `adapt`."""
        self._check_adapted()
        if not isinstance(data, dict):
            raise ValueError(f"A FeatureSpace can only be called with a dict. Received: data={type(data).__name__}")
        columns = {name: dispatch.to_tensor(value) for name, value in data.items() if name in self.features}
        single = any(column.shape.rank == 0 for column in columns.values())
        for name, column in columns.items():
            rank = column.shape.rank
            columns[name] = array.reshape(column, [1, 1]) if rank == 0 else _expanded(column) if rank == 1 else column
        encoded = self._encode(columns)
        self.built = True
        return nest.map_structure(lambda x: array.squeeze(x, [0]), encoded) if single else encoded

    def _encode(self, columns: dict[str, Any]) -> Any:
        values = {name: self.preprocessors[name](columns[name]) for name in self.features}
        crossed = {c.name: self.crossers[c.name]([values[n] for n in c.feature_names]) for c in self.crosses}
        modes = {name: feature.output_mode for name, feature in self.features.items()}
        modes |= {cross.name: cross.output_mode for cross in self.crosses}
        encoded = {}
        for name, value in [*sorted(values.items()), *sorted(crossed.items())]:
            encoded[name] = self._one_hot(name)(value) if modes[name] == "one_hot" else value
        if self.output_mode == "dict":
            return encoded
        for name, value in encoded.items():
            if not value.dtype.is_floating:
                raise ValueError(
                    f"Cannot concatenate features because feature '{name}' has not been encoded (it has dtype "
                    f"{value.dtype.name}). Consider using `output_mode='dict'`."
                )
        return array.concat(list(encoded.values()), axis=-1)

    def _one_hot(self, name: str) -> CategoryEncoding:
        if name not in self._encoders:
            layer = self.preprocessors.get(name) or self.crossers[name]
            size = layer.vocabulary_size() if hasattr(layer, "vocabulary_size") else getattr(layer, "num_bins", None)
            if size is None and isinstance(layer, Discretization):
                size = len(layer.bin_boundaries) + 1
            size = getattr(layer, "num_tokens", None) if size is None else size
            if size is None:
                raise ValueError(
                    f"TableColumn '{name}' has `output_mode='one_hot'`. However it isn't a standard feature and the "
                    "dimensionality of its output space is not known, thus it cannot be one-hot encoded. Try using "
                    "`output_mode='int'`."
                )
            self._encoders[name] = CategoryEncoding(int(size), output_mode="multi_hot")
        return self._encoders[name]

    # ---- saving -----------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {
            "name": self.name,
            "features": {name: feature.get_config() for name, feature in self.features.items()},
            "output_mode": self.output_mode,
            "crosses": [cross.get_config() for cross in self.crosses],
            "crossing_dim": self.crossing_dim,
            "hashing_dim": self.hashing_dim,
            "num_discretization_bins": self.num_discretization_bins,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> FeatureSpace:
        """Return a FeatureSpace with these arguments, whose layers have what a file says."""
        space = cls(**config)
        for layer in space.preprocessors.values():
            if not layer.built:
                layer.build((None, 1))
        space._adapted = space.built = True
        return space


KINDS = (
    "float",
    "float_normalized",
    "float_rescaled",
    "float_discretized",
    "integer_categorical",
    "string_categorical",
    "integer_hashed",
    "string_hashed",
)


def _layer_name(kind: str, name: str | None) -> str:
    return f"{name or fresh(kind)}_preprocessor"


def _column(name: str) -> Any:
    return lambda columns: columns[name]


def _expanded(column: Any) -> Any:
    return array.expand_dims(column, -1)
