"""Write text_expected.json: TensorFlow's results for the texts that test the tokenizer of examples/text_ops.py.

    PYTHON_WITH_TENSORFLOW tests/examples/make_text_expected.py      (2.21 was used)

Words by tf.strings.lower and tf.strings.split (between Unicode's white space after tf.strings.regex_replace of it),
pairs by tf.strings.ngrams, numbers by tf.lookup.StaticHashTable, rows by RaggedTensor.to_tensor. Bytes are kept as
Latin-1, so that JSON holds any.
"""

import json
import random
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent
VOCABULARY = [
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "a",
    "dog",
    "not",
    "good",
    "bad",
    "very",
    "film",
    "very good",
    "very bad",
    "not good",
    "not bad",
    "the cat",
    "the film",
]


def texts():
    """Sentences with what tokenisers stumble over, and bytes by chance."""
    draw = random.Random(0)
    by_hand = [
        b"The cat sat on the mat",
        b"not  good",
        b"",
        b" ",
        b"\t\n\x0b\x0c\r a \r\n",
        b"very",
        b"na\xc3\xafve CAF\xc3\x89",
        b"a\xc2\xa0b",
        b"\xff\xfe \x80",
        b"a\x00b \x00",
        b"dog." * 30,
        b"x " * 100,
    ]
    pieces = [b"the", b"THE", b"cat", b" ", b"  ", b"\t", b"\n", b"film", b"very", b"good", b"\xe2\x80\x83", b"-", b"q"]
    return by_hand + [b"".join(draw.choices(pieces, k=draw.randrange(12))) for _ in range(40)]


def unicode_texts():
    """Valid UTF-8 with white space of every kind, and what only looks like it."""
    draw = random.Random(1)
    spaces = [
        *range(9, 14),
        *range(28, 33),
        0x85,
        0xA0,
        0x1680,
        0x180E,
        *range(0x2000, 0x200C),
        0x2028,
        0x2029,
        0x202F,
        0x205F,
        0x2060,
        0x3000,
        0xFEFF,
    ]
    pieces = [*map(chr, spaces), *["the", "THE", "\u0130", "\u00df", "\u65e5\u672c", "\U0001f600", "a\u0301", "\0"] * 3]
    return ["".join(draw.choices(pieces, k=draw.randrange(12))).encode() for _ in range(60)]


def plain(ragged):
    return {
        "values": [v.decode("latin-1") for v in ragged.values.numpy().tolist()],
        "splits": ragged.row_splits.numpy().tolist(),
    }


def unicode_expected(text):
    separated = tf.strings.regex_replace(text, r"[\s\x{0b}\x{85}\p{Z}]+", " ")
    return {"text": [t.decode("latin-1") for t in text], "tokens": plain(tf.strings.split(separated))}


def expected(text):
    tokens = tf.strings.split(tf.strings.lower(text))
    pairs = tf.strings.ngrams(tokens, 2, separator=" ")
    threes = tf.strings.ngrams(tokens, 3, separator="_")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(VOCABULARY, tf.range(len(VOCABULARY), dtype=tf.int64)), len(VOCABULARY)
    )
    ids = {
        "words": tf.ragged.map_flat_values(table.lookup, tokens),
        "pairs": tf.ragged.map_flat_values(table.lookup, pairs),
    }

    return {
        "text": [t.decode("latin-1") for t in text],
        "tokens": plain(tokens),
        "pairs": plain(pairs),
        "threes": plain(threes),
        "ids": {k: v.to_tensor(-1).numpy().tolist() for k, v in ids.items()},
    }


if __name__ == "__main__":
    everything = texts()
    batches = [everything, everything[:1], [b""], [b"", b" "]]
    found = {"tensorflow": tf.__version__, "batches": [expected(batch) for batch in batches]}
    found["unicode"] = unicode_expected(unicode_texts())
    (HERE / "text_expected.json").write_text(json.dumps(found) + "\n", "utf-8")
