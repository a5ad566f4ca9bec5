"""IndexLookup: the base of layers that map the tokens of a vocabulary to indices.

Lives here: the arguments of StringLookup and IntegerLookup, the table, `adapt`, the call.
Not here: those layers (string_lookup.py, integer_lookup.py), counts and files of tokens (vocabulary.py), the table's
operator (ops/lookup.py), texts (text_vectorization.py), vectors of categories (categories.py).

Indices count the mask token (in mode "int"), the unknown tokens, then the vocabulary in order. Variables hold the
table, so that a model traced with one vocabulary sees the next.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import int64, string
from ...eager.variable import Variable
from ...ops import array, debugging, dispatch, lookup, math
from ...ops.strings.elementwise import bytes_of, text_of
from ...ops.tensor import Tensor, TensorLike
from .. import backend
from ..keras_tensor import KerasTensor
from .categories import MODES, batches_of, check_mode, check_salt, encode, encoded_shape, hash_bucket
from .configurable_layer import ConfigurableLayer
from .vocabulary import TokenCounts, read_lines, read_tokens, read_weights, reads_as_lines, write_assets

_MASKED = int(np.iinfo(np.int64).max)
"""Index of masked tokens in modes that count: that of no category."""


class IndexLookup(ConfigurableLayer):
    """Base of layers with a vocabulary; see StringLookup."""

    _ignored = ConfigurableLayer._ignored | {"_keys", "_values", "_idf"}

    def __init__(
        self,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: Any,
        oov_token: Any,
        vocabulary_dtype: str,
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Any = None,
        vocabulary_size: int | None = None,
        has_input_vocabulary: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        mode = check_mode(output_mode, (*MODES, "tf_idf"), sparse)
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(f"If set, `max_tokens` must be greater than 1. Received: max_tokens={max_tokens}")
        if pad_to_max_tokens and max_tokens is None:
            raise ValueError("If pad_to_max_tokens is True, must set `max_tokens`. Received: max_tokens=None")
        if num_oov_indices < 0:
            raise ValueError(
                f"`num_oov_indices` must be greater than or equal to 0. Received: num_oov_indices={num_oov_indices}"
            )
        if oov_method not in ("floormod", "farmhash"):
            raise ValueError(f"`oov_method` must be 'floormod' or 'farmhash'. Received: oov_method={oov_method}")
        if salt is not None and vocabulary_dtype != "string" and oov_method != "farmhash":
            raise ValueError(f"`salt` can only be used when `oov_method='farmhash'`. Received: oov_method={oov_method}")
        if invert and mode != "int":
            raise ValueError(f"`output_mode` must be `'int'` when `invert` is true. Received: output_mode={mode}")
        if idf_weights is not None and mode != "tf_idf":
            raise ValueError(
                "`idf_weights` should only be set if `output_mode` is `'tf_idf'`. "
                f"Received: idf_weights={idf_weights} and output_mode={mode}"
            )
        self._set_arguments(
            invert=invert,
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            oov_token=oov_token,
            mask_token=mask_token,
            output_mode=mode,
            sparse=sparse,
            pad_to_max_tokens=pad_to_max_tokens,
            vocabulary_dtype=vocabulary_dtype,
            oov_method=oov_method,
            salt=check_salt(salt, type(self).__name__),
        )
        self.autocast, self.built = False, True
        self._input_vocabulary = None if isinstance(vocabulary, (str, os.PathLike)) else _plain_list(vocabulary)
        self._input_weights = _plain_list(idf_weights)
        self._has_input_vocabulary = vocabulary is not None if has_input_vocabulary is None else has_input_vocabulary
        self._called_depth: int | None = None
        self._tokens: list[Any] = []
        self._keys = Variable(self._as_keys([]), trainable=False, shape=[None], name=f"{self.name}/keys")
        self._values = Variable(self._as_values([]), trainable=False, shape=[None], name=f"{self.name}/values")
        self._idf = Variable(np.zeros(0, np.float32), trainable=False, shape=[None], name=f"{self.name}/idf_weights")
        self.reset_state()
        if vocabulary is not None:
            if mode == "tf_idf" and idf_weights is None:
                raise ValueError(
                    "When specifying the `vocabulary` argument, in TF-IDF output mode, the `idf_weights` argument "
                    "must also be provided."
                )
            self.set_vocabulary(vocabulary, idf_weights)

    # ---- the vocabulary ----------------------------------------------------------------------------------------------

    def _oov_start(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    def _token_start(self) -> int:
        start: int = self._oov_start() + self.num_oov_indices
        return start

    def _special_tokens(self) -> list[Any]:
        return [self.mask_token] * self._oov_start() + [self.oov_token] * self.num_oov_indices

    def _token(self, value: Any) -> Any:
        """Return a token as keys have it: bytes, or an integer."""
        if self.vocabulary_dtype != "string":
            return int(value)
        return value if isinstance(value, bytes) else bytes_of(str(value))

    def _as_keys(self, tokens: list[Any]) -> np.ndarray:
        return _indices_from(self._token_start(), tokens) if self.invert else self._token_array(tokens)

    def _as_values(self, tokens: list[Any]) -> np.ndarray:
        return self._token_array(tokens) if self.invert else _indices_from(self._token_start(), tokens)

    def _token_array(self, tokens: list[Any]) -> np.ndarray:
        result = np.empty(len(tokens), object if self.vocabulary_dtype == "string" else np.int64)
        result[:] = tokens
        return result

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Return the vocabulary, in the order of the indices. include_special_tokens: mask and unknown, too."""
        tokens = [text_of(t) if isinstance(t, bytes) else t for t in self._tokens]
        return [*self._special_tokens(), *tokens] if include_special_tokens else tokens

    def vocabulary_size(self) -> int:
        """Return the number of indices, those of mask and unknown tokens included."""
        return self._token_start() + len(self._tokens)

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the vocabulary: a list or array, with or without the special tokens at its start, or a path.

        vocabulary: the path of a text file has a token per line. idf_weights: for mode "tf_idf", a number per token.
        raises ValueError for repeated or special tokens, for more than max_tokens, and for another number of weights
        """
        if (idf_weights is None) == (self.output_mode == "tf_idf"):
            raise ValueError(
                "`idf_weights` must be set if output_mode is 'tf_idf'."
                if idf_weights is None
                else f"`idf_weights` should only be set if output_mode is `'tf_idf'`. Received: {self.output_mode}"
            )
        if isinstance(vocabulary, (str, os.PathLike)):
            if not os.path.exists(vocabulary):
                raise ValueError(f"Vocabulary file {vocabulary} does not exist.")
            vocabulary = read_lines(vocabulary)
        tokens = [self._token(t) for t in _listed(vocabulary)]
        if not tokens:
            raise ValueError(f"Cannot set an empty vocabulary. Received: vocabulary={vocabulary}")
        special = [None if t is None else self._token(t) for t in self._special_tokens()]
        has_special = len(special) > 0 and tokens[: len(special)] == special
        rest = tokens[len(special) :] if has_special else tokens
        self._check_tokens(rest)
        size = len(special) + len(rest)
        if self.max_tokens is not None and size > self.max_tokens:
            raise ValueError(
                "Attempted to set a vocabulary larger than the maximum vocab size. Received vocabulary size is "
                f"{size}; `max_tokens` is {self.max_tokens}."
            )
        if idf_weights is not None:
            numbers = np.asarray(_listed(idf_weights), np.float64)
            if numbers.ndim != 1 or len(numbers) != len(tokens):
                raise ValueError(
                    "`idf_weights` must be the same length as vocabulary. "
                    f"The weights have shape {numbers.shape}; len(vocabulary) is {len(tokens)}"
                )
            mean = np.average(numbers)
            self._set_idf(numbers if has_special else np.concatenate([np.full(len(special), mean), numbers]))
        self._set_tokens(rest)

    def _check_tokens(self, tokens: list[Any]) -> None:
        repeated = [token for token, count in Counter(tokens).items() if count > 1]
        if repeated:
            raise ValueError(
                "The passed vocabulary has at least one repeated term. Please uniquify your dataset. The repeated "
                f"terms are: {repeated[:10]}"
            )
        for kind, token in ("mask", self.mask_token), ("OOV", self.oov_token if self.invert else None):
            if token is not None and self._token(token) in tokens:
                raise ValueError(
                    f"Found reserved {kind} token at unexpected location in `vocabulary`. Note that passed "
                    "`vocabulary` does not need to include the OOV and mask tokens. Either remove all mask and OOV "
                    "tokens, or include them only at the start of the vocabulary in precisely this order: "
                    f"{self._special_tokens()}. Received: token={token} at vocabulary index "
                    f"{tokens.index(self._token(token))}"
                )

    def _set_tokens(self, tokens: list[Any]) -> None:
        size = self._token_start() + len(tokens)
        if self._called_depth is not None and not self.pad_to_max_tokens and size != self._called_depth:
            raise RuntimeError(
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens=False`, the vocabulary size "
                f"cannot be changed after the layer is called. Old vocab size is {self._called_depth}, new vocab "
                f"size is {size}"
            )
        self._tokens = tokens
        self._keys.assign(self._as_keys(tokens))
        self._values.assign(self._as_values(tokens))

    def _set_idf(self, weights: np.ndarray) -> None:
        depth = self.max_tokens if self.pad_to_max_tokens else len(weights)
        self._idf.assign(np.pad(weights, (0, depth - len(weights))).astype(np.float32))

    # ---- adapt -------------------------------------------------------------------------------------------------------

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Take the vocabulary from data: the most frequent tokens first, of equal counts the greater first.

        data: an array, tensor, list, or a Dataset of batches; steps: the number of batches to read. An array of one
        dimension has a document per element.
        raises ValueError if the constructor had a vocabulary
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            tensor: Tensor = dispatch.to_tensor(batch, string if self.vocabulary_dtype == "string" else None)
            is_dataset = batch is not data
            self.update_state(array.expand_dims(tensor, -1) if tensor.shape.rank == 1 and not is_dataset else tensor)
        self.finalize_state()

    def reset_state(self) -> None:
        """Forget what `update_state` counted."""
        self._token_counts = TokenCounts(by_document=self.output_mode == "tf_idf")

    def update_state(self, data: Any) -> None:
        """Count the tokens of documents, the rows of an array; one dimension is one document."""
        tokens = np.asarray(data.numpy() if hasattr(data, "numpy") else data)
        rows = tokens.reshape(-1, tokens.shape[-1]) if tokens.ndim > 1 else tokens.reshape(1, -1)
        self._count_documents(rows.tolist())

    def _count_documents(self, documents: Iterable[Sequence[Any]]) -> None:
        if self._has_input_vocabulary:
            raise ValueError(
                f"Cannot adapt layer '{self.name}' after setting a static vocabulary via `vocabulary` argument."
            )
        for document in documents:
            self._token_counts.add([self._token(t) for t in document])

    def finalize_state(self) -> None:
        """Set the vocabulary to the tokens counted."""
        counts = self._token_counts
        for token in (self.mask_token, self.oov_token):
            if token is not None:
                counts.discard(self._token(token))
        if self._has_input_vocabulary or not counts:
            return
        start = self._token_start()
        tokens = counts.most_frequent(None if self.max_tokens is None else self.max_tokens - start)
        if self.output_mode == "tf_idf":
            idf = counts.inverse_document_frequencies(tokens)
            self._set_idf(np.concatenate([np.full(start, np.mean(idf)), idf]))
        self._set_tokens(tokens)
        self.reset_state()

    # ---- the call ----------------------------------------------------------------------------------------------------

    def _depth(self) -> int:
        depth: int = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
        return depth

    def call(self, inputs: Any) -> Any:
        """Return the indices of tokens, or their encoding. Raises RuntimeError for an encoding without vocabulary."""
        key_dtype = string if self.vocabulary_dtype == "string" and not self.invert else int64
        keys: Any = inputs if isinstance(inputs, TensorLike) else dispatch.to_tensor(_as_array(inputs, key_dtype))
        keys = keys if keys.dtype is key_dtype else array.cast(keys, key_dtype)
        indices = self._look_up(keys)
        if self.output_mode == "int":
            return indices
        if self.lacks_depth:
            raise RuntimeError(
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens=False`, you must set the layer's "
                "vocabulary before calling it. Either pass a `vocabulary` argument to the layer, or call `adapt` "
                "with some sample data."
            )
        depth = self._called_depth = self._depth()
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        vectors = encode(indices, mode, depth, backend.floatx())
        if self.output_mode == "tf_idf":
            vectors = vectors * array.ensure_shape(array.cast(self._idf, vectors.dtype), [depth])
        return vectors

    def _look_up(self, keys: Tensor) -> Tensor:
        """Return the index of each token, or the token of each index."""
        default = self._token(self.oov_token) if self.invert else self._oov_start() if self.num_oov_indices == 1 else -1
        values = lookup.LookupTableFind(keys, self._keys, self._values, default)
        if self.invert:
            if self.mask_token is None:
                return values
            return array.where(math.equal(keys, 0), self._token(self.mask_token), values)
        if self.num_oov_indices != 1:
            values = self._of_unknown(keys, values)
        if self.mask_token is not None:
            masked = array.cast(0 if self.output_mode == "int" else _MASKED, int64)
            values = array.where(math.equal(keys, self._token(self.mask_token)), masked, values)
        return values

    def _of_unknown(self, keys: Tensor, values: Tensor) -> Tensor:
        """Return the indices with those of unknown tokens, which have -1: by hash."""
        unknown = values < 0
        if self.mask_token is not None:
            unknown = math.logical_and(unknown, math.not_equal(keys, self._token(self.mask_token)))
        if self.num_oov_indices == 0:
            message = (
                "When `num_oov_indices=0` all inputs should be in vocabulary, found OOV values, consider setting "
                "`num_oov_indices=1`."
            )
            debugging.Assert(math.logical_not(math.reduce_any(unknown)), [message, array.boolean_mask(keys, unknown)])
            return values
        if keys.dtype is not string and self.oov_method == "floormod":
            hashed = math.floormod(keys, array.cast(self.num_oov_indices, keys.dtype))
        else:
            hashed = hash_bucket(keys, self.num_oov_indices, self.salt)
        return array.where(unknown, hashed + array.cast(self._oov_start(), int64), values)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the indices or their encoding."""
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        return encoded_shape(input_shape, mode, self._depth())

    @property
    def lacks_depth(self) -> bool:
        """Whether the length of encodings is unknown until there is a vocabulary."""
        return self.output_mode != "int" and not self._tokens and not self.pad_to_max_tokens

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the KerasTensor of the result; before there is a vocabulary, of an encoding of unknown length."""
        if not self.lacks_depth:
            return super().compute_output_spec(*args, **kwargs)
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        return KerasTensor(encoded_shape(args[0].shape, mode, None), backend.floatx(), name=self.name)

    # ---- files -------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments. A vocabulary that `adapt` found is not part of it, but an asset."""
        return {
            **super().get_config(),
            "vocabulary": self._input_vocabulary,
            "idf_weights": self._input_weights,
            "vocabulary_size": self.vocabulary_size(),
            "has_input_vocabulary": self._has_input_vocabulary,
        }

    def save_assets(self, dir_path: str) -> None:
        """Write the vocabulary to a folder, unless it is an argument of the constructor."""
        if self._input_vocabulary is None and self._tokens:
            idf = self._idf.numpy() if self.output_mode == "tf_idf" else None
            write_assets(dir_path, self.get_vocabulary(), idf)

    def load_assets(self, dir_path: str) -> None:
        """Read the vocabulary that `save_assets` wrote."""
        tokens = read_tokens(dir_path)
        if tokens is not None:
            self._set_tokens([self._token(t) for t in tokens[self._token_start() :]])
            if self.output_mode == "tf_idf":
                self._idf.assign(read_weights(dir_path))

    def lacks_keras_files(self) -> str | None:
        """Return why Keras does not read the vocabulary of a file, None if it does."""
        if self._input_vocabulary is not None or not self._tokens:
            return None
        if self.output_mode == "tf_idf":
            return "its weights of tokens are in a file, in Keras among those of the model"
        return None if reads_as_lines(self.get_vocabulary()) else "its tokens have line breaks"


def _indices_from(start: int, tokens: list[Any]) -> np.ndarray:
    return np.arange(start, start + len(tokens), dtype=np.int64)


def _listed(values: Any) -> list[Any]:
    """Return the elements of a list, array or tensor of one dimension."""
    values = values.numpy() if hasattr(values, "numpy") else values
    result: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return result


def _plain_list(values: Any) -> list[Any] | None:
    """Return values for a configuration: strings, not bytes."""
    return None if values is None else [text_of(v) if isinstance(v, bytes) else v for v in _listed(values)]


def _as_array(values: Any, dtype: Any) -> Any:
    return values if dtype is string else np.asarray(values, np.int64)
