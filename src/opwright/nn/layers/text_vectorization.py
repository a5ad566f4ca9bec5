"""TextVectorization: texts as numbers.

Lives here: the layer: standardizing, splitting, n-grams, padding.
Not here: its vocabulary (index_lookup.py), the operators on strings (ops/strings/).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import string
from ...ops import array, dispatch, strings
from ...ops.ragged import RaggedTensor
from ..keras_tensor import KerasTensor
from .categories import MODES, batches_of, check_mode
from .configurable_layer import ConfigurableLayer
from .string_lookup import StringLookup

STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
SPLITS = ("whitespace", "character")
PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""


class TextVectorization(ConfigurableLayer):
    """Numbers of the words of texts, int64 [batch, words], padded with 0; 1 is an unknown word.

    max_tokens: of the vocabulary. standardize: "lower", "strip_punctuation", both, a function of string tensors, or
    None. split: "whitespace", "character", a function that returns words as one more dimension (`ow.strings.split`), or
    None. ngrams: lengths of sequences of words that are one token, a tuple, or an int for all up to it. output_mode:
    "int", or vectors as those of StringLookup. output_sequence_length: words at which rows are padded or cut. ragged:
    a RaggedTensor instead of padding. vocabulary: a list or the path of a file; without it `adapt` finds one.

    inputs: strings [batch] or [batch, 1].
    raises ValueError for other modes and combinations

    >>> layer = ow.keras.layers.TextVectorization(vocabulary=["red", "fox"])
    >>> layer(["The red fox.", "Red!"]).numpy()
    array([[1, 2, 3],
           [2, 0, 0]])
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: Any = "lower_and_strip_punctuation",
        split: Any = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: Any = None,
        idf_weights: Any = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        vocabulary_size: int | None = None,
        has_input_vocabulary: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        for argument, value, allowed in ("standardize", standardize, STANDARDS), ("split", split, SPLITS):
            if value is not None and value not in allowed and not callable(value):
                raise ValueError(
                    f"Unknown value for `{argument}` argument of layer TextVectorization. If restricted to strings, "
                    f"allowed values are: {allowed}. Received: {argument}={value}"
                )
        mode = check_mode(output_mode, (*MODES, "tf_idf"), sparse)
        if isinstance(ngrams, list):
            ngrams = tuple(ngrams)
        is_tuple = isinstance(ngrams, tuple) and all(isinstance(n, int) for n in ngrams)
        if not (ngrams is None or isinstance(ngrams, int) or is_tuple):
            raise ValueError(f"`ngrams` must be None, an integer, or a tuple of integers. Received: ngrams={ngrams}")
        if output_sequence_length is not None and (mode != "int" or not isinstance(output_sequence_length, int)):
            raise ValueError(
                "`output_sequence_length` must be None, or an integer when `output_mode` is 'int'. Received: "
                f"output_sequence_length={output_sequence_length}, output_mode={mode}"
            )
        if ragged and mode != "int":
            raise ValueError(f"`ragged` must not be true unless `output_mode` is `'int'`. Received: output_mode={mode}")
        self._set_arguments(
            standardize=standardize,
            split=split,
            ngrams=ngrams,
            output_mode=mode,
            output_sequence_length=output_sequence_length,
            sparse=sparse,
            ragged=ragged,
            encoding=encoding,
        )
        self.autocast, self.built = False, True
        self._lookup_layer = StringLookup(
            max_tokens=max_tokens,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            pad_to_max_tokens=pad_to_max_tokens,
            mask_token="",
            output_mode=mode,
            encoding=encoding,
            has_input_vocabulary=has_input_vocabulary,
        )

    # ---- the vocabulary ----------------------------------------------------------------------------------------------

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """Return the vocabulary in the order of the indices, which begin with padding and unknown words."""
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def vocabulary_size(self) -> int:
        """Return the number of indices."""
        return self._lookup_layer.vocabulary_size()

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the vocabulary; see StringLookup."""
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Take the vocabulary from texts: the most frequent words first.

        data: a list, array or tensor of texts, or a Dataset of batches; steps: the number of batches to read
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            texts: Any = dispatch.to_tensor(batch, string)
            whole = batch is data and texts.shape.rank == 1
            self.update_state(array.expand_dims(texts, -1) if whole else texts)
        self.finalize_state()

    def reset_state(self) -> None:
        """Forget what `update_state` counted."""
        self._lookup_layer.reset_state()

    def update_state(self, data: Any) -> None:
        """Count the words of texts."""
        words = self._words(dispatch.to_tensor(data, string))
        if isinstance(words, RaggedTensor):
            self._lookup_layer._count_documents(words.to_list())
        else:
            self._lookup_layer.update_state(words)

    def finalize_state(self) -> None:
        """Set the vocabulary to the words counted."""
        self._lookup_layer.finalize_state()

    # ---- the call ----------------------------------------------------------------------------------------------------

    def _words(self, texts: Any) -> Any:
        """Return the tokens of texts, [batch, words] or ragged."""
        if self.standardize in ("lower", "lower_and_strip_punctuation"):
            texts = strings.lower(texts)
        if self.standardize in ("strip_punctuation", "lower_and_strip_punctuation"):
            texts = strings.regex_replace(texts, PUNCTUATION, "")
        if callable(self.standardize):
            texts = self.standardize(texts)
        if self.split is not None:
            if texts.shape.rank is not None and texts.shape.rank > 1:
                if texts.shape[-1] != 1:
                    raise ValueError(
                        "When using `TextVectorization` to tokenize strings, the input rank must be 1 or the last "
                        f"shape dimension must be 1. Received: inputs.shape={texts.shape}"
                    )
                texts = array.squeeze(texts, [-1])
            if self.split == "whitespace":
                texts = strings.split(texts)
            elif self.split == "character":
                texts = strings.unicode_split(texts, "UTF-8")
            else:
                texts = self.split(texts)
        if self.ngrams is not None:
            widths = tuple(range(1, self.ngrams + 1)) if isinstance(self.ngrams, int) else self.ngrams
            texts = strings.ngrams(texts, ngram_width=widths, separator=" ")
        return texts

    def save_assets(self, dir_path: str) -> None:
        """Write the vocabulary, which Keras stores twice: for this layer and for the one in it."""
        self._lookup_layer.save_assets(dir_path)

    def load_assets(self, dir_path: str) -> None:
        """Read the vocabulary that `save_assets` wrote."""
        self._lookup_layer.load_assets(dir_path)

    def call(self, inputs: Any) -> Any:
        """Return the numbers of the words of texts, or their encoding."""
        words = self._words(inputs if isinstance(inputs, RaggedTensor) else dispatch.to_tensor(inputs, string))
        if self.output_mode in ("multi_hot", "count", "tf_idf") and isinstance(words, RaggedTensor):
            words = words.to_tensor("")  # the mask token, which no category is
        indices = self._lookup_layer(words)
        if self.output_mode != "int" or self.ragged:
            length = self.output_sequence_length
            return indices if length is None else indices[..., :length]
        length = self.output_sequence_length
        if isinstance(indices, RaggedTensor):
            return indices.to_tensor(shape=[None] * indices.ragged_rank + [length])
        if length is None:
            return indices
        kept = indices[..., :length]
        missing = length - array.shape(kept)[-1]
        rank = kept.shape.rank
        ends = array.concat([array.zeros([rank - 1, 2], "int32"), array.stack([[0, missing]])], 0)
        return array.ensure_shape(array.pad(kept, ends), [*kept.shape[:-1], length])

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the KerasTensor of the result."""
        if self.ragged:
            raise ValueError("A layer with ragged=True cannot be part of a functional model: its inputs are dense")
        if self._lookup_layer.lacks_depth:
            shape = (*args[0].shape, None) if self.split is not None else args[0].shape
            return self._lookup_layer.compute_output_spec(KerasTensor(shape, "string"))
        return super().compute_output_spec(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments. A vocabulary that `adapt` found is not part of it, but an asset."""
        inner = self._lookup_layer.get_config()
        names = (
            *("max_tokens", "pad_to_max_tokens", "vocabulary", "idf_weights", "vocabulary_size"),
            "has_input_vocabulary",
        )
        return {**super().get_config(), **{name: inner[name] for name in names}}
