"""StringLookup: the indices of strings in a vocabulary.

Lives here: the layer. Not here: vocabularies and the call (index_lookup.py), integers (integer_lookup.py).
"""

from __future__ import annotations

from typing import Any

from .index_lookup import IndexLookup


class StringLookup(IndexLookup):
    """Indices of strings in a vocabulary, int64, or with invert the strings of indices.

    max_tokens: of the vocabulary, special tokens included. num_oov_indices: how many indices unknown tokens share, by
    hash; with 0 they are an error. mask_token: a token with index 0 (in modes that count: without one). oov_token: with
    invert what unknown indices become. vocabulary: a list or the path of a file; without it `adapt` finds one.
    output_mode: "int"; "one_hot", "multi_hot", "count": as CategoryEncoding; "tf_idf": counts by inverse document
    frequencies, of `adapt` or idf_weights. pad_to_max_tokens: whether vectors have max_tokens elements. salt: the key
    of SipHash64 for unknown tokens; without it FarmHash64.

    >>> layer = ow.keras.layers.StringLookup(vocabulary=["a", "b"])
    >>> layer(["b", "z", "a"]).numpy()
    array([2, 0, 1])
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: Any = None,
        oov_token: Any = "[UNK]",
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: Any = None,
        **kwargs: Any,
    ) -> None:
        if encoding.lower().replace("-", "") != "utf8":
            raise ValueError(f"Strings are read as UTF-8. Received: encoding={encoding}")
        kwargs.pop("vocabulary_dtype", None)
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            name=name,
            salt=salt,
            vocabulary_dtype="string",
            **kwargs,
        )
        self.encoding = encoding

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = {**super().get_config(), "encoding": self.encoding}
        del config["vocabulary_dtype"]
        return config
