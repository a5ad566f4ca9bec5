"""Strings: tensors of bytes, `ow.strings`.

Lives here: the family's public names.  Not here: string comparison and joining by `+` (math/).
"""

from __future__ import annotations

from .conversion import as_string, format, to_hash_bucket, to_hash_bucket_fast, to_hash_bucket_strong, to_number
from .elementwise import join, length, lower, regex_full_match, regex_replace, strip, substr, upper
from .split_join import bytes_split, ngrams, reduce_join, split, unicode_split
from .unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_script,
    unicode_split_with_offsets,
    unicode_transcode,
    unsorted_segment_join,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_script",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]
