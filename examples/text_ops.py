"""A library of operators on text, in the manner of TF Text, and a model that reads sentences with it.

    python examples/text_ops.py
    opwright bench reader.tflite --custom examples/text_ops.py --ops

Lists of different lengths are ragged: all their words in a row, and int64 splits [lists + 1] with the places where they
begin and the end of the last. Each operator takes and gives that, so one model serves any number of sentences of any
length. They are plain Python: `infer` says what is known ahead (dtypes, ranks), `compute` gets arrays of bytes.
"""

import itertools
import re

import numpy as np

import opwright as ow
from opwright import lite


def words(items, shape=-1):
    """Strings as the array they are in tensors."""
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def check_splits(op, splits, count):
    """Splits of a file are not to be trusted: they rise, from 0 to the number of words."""
    if splits.ndim != 1 or not len(splits) or splits[0] != 0 or splits[-1] != count or (np.diff(splits) < 0).any():
        raise ow.errors.InvalidArgumentError(
            what="the splits are not those of the words", found=splits[:8].tolist(), wanted=f"rising, 0 to {count}"
        )


# Unicode's White_Space
SPACES = [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
parted = re.compile(b"(?:" + b"|".join(chr(c).encode() for c in SPACES) + b")+").split


@ow.operator
class WhitespaceTokens:
    """The words of each text, as white space parts them.

    .. math:: tokens = words(text_0) + words(text_1) + ...
    """

    text = ow.Input(ow.string, rank=1, doc="[n]")
    tokens = ow.Output(dtype=ow.string, doc="[words]")
    splits = ow.Output(dtype=ow.int64, doc="[n + 1]")
    lower = ow.Attr(bool, default=False, doc="whether capital letters (ASCII) become small ones")
    unicode = ow.Attr(bool, default=False, doc="whether all white space of Unicode counts, in UTF-8; else ASCII's")
    lod = "vanishes"

    def infer(op):
        (n,) = op.text.spec.shape.dims or (None,)
        return ow.TensorSpec([None], ow.string), ow.TensorSpec([None if n is None else n + 1], ow.int64)

    def compute(op, text):
        texts = [t.lower() if op.lower else t for t in text.tolist()]
        rows = [[w for w in parted(t) if w] for t in texts] if op.unicode else [t.split() for t in texts]
        ends = list(itertools.accumulate(map(len, rows), initial=0))
        return words([w for row in rows for w in row]), np.array(ends, np.int64)


@ow.operator
class RaggedNgrams:
    """All runs of `width` neighbours of each list, joined.

    .. math:: ngrams_{ij} = tokens_{ij} + separator + ... + tokens_{i, j + width - 1}
    """

    tokens = ow.Input(ow.string, rank=1, doc="[words]")
    splits = ow.Input(ow.int64, rank=1, doc="[n + 1]")
    ngrams = ow.Output(dtype=ow.string, doc="[runs]")
    ngram_splits = ow.Output(dtype=ow.int64, doc="[n + 1]")
    width = ow.Attr(int, default=2, check=ow.attr.at_least(1), doc="how many words")
    separator = ow.Attr(str, default=" ")
    lod = "vanishes"

    def infer(op):
        return ow.TensorSpec([None], ow.string), op.splits.spec

    def compute(op, tokens, splits):
        check_splits(op, splits, len(tokens))
        items, join = tokens.tolist(), op.separator.encode().join
        rows = [
            [join(items[i : i + op.width]) for i in range(a, b - op.width + 1)]
            for a, b in itertools.pairwise(splits.tolist())
        ]
        ends = list(itertools.accumulate(map(len, rows), initial=0))
        return words([run for row in rows for run in row]), np.array(ends, np.int64)


@ow.operator
class VocabularyIds:
    """The number of each word in a vocabulary; of a word that is not in it the vocabulary's length.

    .. math:: ids_i = \\min \\{k : vocabulary_k = tokens_i\\}
    """

    tokens = ow.Input(ow.string, doc="of any shape")
    vocabulary = ow.Input(ow.string, rank=1, doc="[size]")
    ids = ow.Output(dtype=ow.int64, doc="as tokens")
    lod = "vanishes"

    def infer(op):
        return ow.TensorSpec(op.tokens.spec.shape, ow.int64)

    def compute(op, tokens, vocabulary):
        number = {word: k for k, word in reversed(list(enumerate(vocabulary.tolist())))}
        result = [number.get(word, len(vocabulary)) for word in tokens.reshape(-1).tolist()]
        return np.array(result, np.int64).reshape(tokens.shape)


@ow.operator
class RaggedToDense:
    """Lists as rows, filled up to the longest.

    .. math:: dense_{ij} = values_{splits_i + j}
    """

    values = ow.Input(ow.int64, rank=1, doc="[words]")
    splits = ow.Input(ow.int64, rank=1, doc="[n + 1]")
    dense = ow.Output(dtype=ow.int64, doc="[n, longest]")
    default = ow.Attr(int, default=0, doc="what fills up")
    lod = "vanishes"

    def infer(op):
        (n,) = op.splits.spec.shape.dims or (None,)
        return ow.TensorSpec([None if n is None else n - 1, None], ow.int64)

    def compute(op, values, splits):
        check_splits(op, splits, len(values))
        lengths = np.diff(splits)
        dense = np.full((len(lengths), lengths.max(initial=0)), op.default, np.int64)
        dense[np.arange(dense.shape[1]) < lengths[:, None]] = values
        return dense


OPERATORS = [WhitespaceTokens, RaggedNgrams, VocabularyIds, RaggedToDense]

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


class Reader(ow.Module):
    """Sentences to numbers: words and pairs of words, their numbers, the mean of their vectors, two scores."""

    def __init__(self, size=8):
        rng = np.random.default_rng(0)
        self.vectors = ow.Variable(rng.normal(size=(len(VOCABULARY) + 1, size)).astype(np.float32))
        self.weights = ow.Variable(rng.normal(size=(size, 2)).astype(np.float32))

    @ow.function(input_signature=[ow.TensorSpec([None], ow.string, name="text")])
    def ids(self, text):
        """The numbers of words and of pairs, [n, longest], -1 where a sentence has no more."""
        vocabulary = ow.constant(VOCABULARY)
        tokens, splits = WhitespaceTokens(text, lower=True)
        pairs, pair_splits = RaggedNgrams(tokens, splits)
        unigrams = RaggedToDense(VocabularyIds(tokens, vocabulary), splits, default=-1)
        bigrams = RaggedToDense(VocabularyIds(pairs, vocabulary), pair_splits, default=-1)
        return {"words": unigrams, "pairs": bigrams}

    @ow.function(input_signature=[ow.TensorSpec([None], ow.string, name="text")])
    def scores(self, text):
        """[n, 2], each row adding up to 1."""
        result = self.ids(text)
        numbers = ow.concat([result["words"], result["pairs"]], 1)
        there = ow.cast(numbers >= 0, ow.float32)
        vectors = ow.gather(self.vectors, ow.maximum(numbers, 0)) * ow.expand_dims(there, -1)
        total = ow.maximum(ow.reduce_sum(there, 1, keepdims=True), 1.0)
        return {"scores": ow.nn.softmax(ow.matmul(ow.reduce_sum(vectors, 1) / total, self.weights))}


def convert():
    """The file, with two signatures: `ids` and `scores`."""
    reader = Reader()
    functions = [reader.ids.get_concrete_function(), reader.scores.get_concrete_function()]
    converter = lite.TFLiteConverter.from_concrete_functions(functions, reader)
    converter.allow_custom_ops = True
    return converter.convert()


SENTENCES = ["The cat sat on the mat", "not  good", "", "a very good film \t very VERY good", "unknown words"]


def main():
    content = convert()
    with open("reader.tflite", "wb") as file:
        file.write(content)
    interpreter = lite.Interpreter(model_content=content, custom_ops=OPERATORS)
    text = words([s.encode() for s in SENTENCES])
    for name, value in interpreter.get_signature_runner("ids")(text=text).items():
        print(name, value, sep="\n")
    print(interpreter.get_signature_runner("scores")(text=text)["scores"])


if __name__ == "__main__":
    main()
