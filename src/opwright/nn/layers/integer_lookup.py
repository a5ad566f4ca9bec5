"""IntegerLookup: the indices of integers in a vocabulary.

Lives here: the layer. Not here: vocabularies and the call (index_lookup.py), strings (string_lookup.py).
"""

from __future__ import annotations

from typing import Any

from .index_lookup import IndexLookup


class IntegerLookup(IndexLookup):
    """Indices of integers in a vocabulary, int64; arguments as StringLookup.

    oov_method: how unknown integers share num_oov_indices: "floormod", by remainder, or "farmhash".
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: Any = None,
        oov_token: Any = -1,
        vocabulary: Any = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if vocabulary_dtype != "int64":
            raise ValueError(f"Only `vocabulary_dtype='int64'` is supported. Received: {vocabulary_dtype}")
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary=vocabulary,
            vocabulary_dtype=vocabulary_dtype,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            sparse=sparse,
            pad_to_max_tokens=pad_to_max_tokens,
            oov_method=oov_method,
            salt=salt,
            name=name,
            **kwargs,
        )
