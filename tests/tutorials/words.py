"""Programs on words, categories and texts."""

import numpy as np
from tutorial_programs import program

WORDS = [["ant", "bee", "cow"], ["bee", "dog", ""], ["cow", "bee", "elk"]]
VOCABULARY = ["bee", "cow", "ant"]


@program
def lookup_of_strings(tf):
    layers, words = tf.keras.layers, tf.constant(WORDS)
    result = {}
    for name, options in {
        "plain": {},
        "mask": {"mask_token": ""},
        "several": {"num_oov_indices": 4},
        "several and mask": {"num_oov_indices": 3, "mask_token": ""},
        "salt": {"num_oov_indices": 5, "salt": [7, 133]},
        "one salt": {"num_oov_indices": 5, "salt": 9},
        "other token": {"oov_token": "none"},
    }.items():
        layer = layers.StringLookup(vocabulary=VOCABULARY, **options)
        result[name] = [layer(words), layer(words[0]), layer(words[0, 1]), layer.get_vocabulary()]
        result[name] += [layer.get_vocabulary(include_special_tokens=False), layer.vocabulary_size()]
    known = layers.StringLookup(vocabulary=VOCABULARY, num_oov_indices=0)
    return {**result, "known": known([["ant", "cow"]])}


@program
def vectors_of_strings(tf):
    words, result = tf.constant(WORDS), {}
    for mode in ("one_hot", "multi_hot", "count"):
        for name, options in {"plain": {}, "mask": {"mask_token": ""}, "padded": {"max_tokens": 9}}.items():
            layer = tf.keras.layers.StringLookup(
                vocabulary=VOCABULARY, output_mode=mode, pad_to_max_tokens=name == "padded", **options
            )
            result[f"{mode} {name}"] = [
                np.float32(layer(words)),
                np.float32(layer(words[:, :1])),
                layer.get_vocabulary(),
            ]
    for padded in (False, True):
        layer = tf.keras.layers.StringLookup(
            vocabulary=VOCABULARY,
            idf_weights=[0.5, 0.25, 2.0],
            output_mode="tf_idf",
            max_tokens=8,
            pad_to_max_tokens=padded,
        )
        result[f"tf_idf {padded}"] = layer(words)
    return result


@program
def strings_of_indices(tf):
    indices = tf.constant([[0, 1, 2], [3, 4, 9]], tf.int64)
    result = {}
    for name, options in {"plain": {}, "mask": {"mask_token": ""}, "token": {"oov_token": "?"}}.items():
        result[name] = tf.keras.layers.StringLookup(vocabulary=VOCABULARY, invert=True, **options)(indices)
    return result


@program
def adapted_vocabulary(tf):
    result = {}
    for name, options in {
        "plain": {},
        "few": {"max_tokens": 3},
        "mask": {"mask_token": "", "num_oov_indices": 2},
        "tf_idf": {"output_mode": "tf_idf"},
        "few tf_idf": {"output_mode": "tf_idf", "max_tokens": 7, "pad_to_max_tokens": True},
    }.items():
        layer = tf.keras.layers.StringLookup(**options)
        layer.adapt(np.array(WORDS))
        values = layer(tf.constant(WORDS))
        batches = tf.data.Dataset.from_tensor_slices(WORDS).batch(2)
        other = tf.keras.layers.StringLookup(**options)
        other.adapt(batches, steps=1)
        result[name] = [layer.get_vocabulary(), values, other.get_vocabulary(), other(tf.constant(WORDS))]
    flat = tf.keras.layers.StringLookup(output_mode="tf_idf")
    flat.adapt(["a", "b", "a", "c"])
    return {**result, "flat": [flat.get_vocabulary(), flat([["a", "c", "z"]])]}


@program
def lookup_of_integers(tf):
    numbers = tf.constant([[12, 1138, 42], [42, 1000, 36]], tf.int64)
    result = {}
    for name, options in {
        "plain": {},
        "mask": {"mask_token": 36},
        "floormod": {"num_oov_indices": 3},
        "farmhash": {"num_oov_indices": 3, "oov_method": "farmhash"},
        "salted": {"num_oov_indices": 3, "oov_method": "farmhash", "salt": 4},
    }.items():
        layer = (
            tf.keras.layers.IntegerLookup(vocabulary=[12, 36, 1138, 42], **options)
            if name != "mask"
            else (tf.keras.layers.IntegerLookup(vocabulary=[12, 1138, 42], **options))
        )
        result[name] = [layer(numbers), [int(v) for v in layer.get_vocabulary()]]
    back = tf.keras.layers.IntegerLookup(vocabulary=[12, 36], invert=True)
    adapted = tf.keras.layers.IntegerLookup(output_mode="count")
    adapted.adapt(numbers)
    vectors = np.float32(adapted(numbers))
    return {**result, "back": back([[0, 1], [2, 5]]), "adapted": [[int(v) for v in adapted.get_vocabulary()], vectors]}


@program
def hashes(tf):
    layers, words = tf.keras.layers, tf.constant(WORDS)
    result = {}
    for name, options in {
        "plain": {},
        "mask": {"mask_value": ""},
        "salt": {"salt": [133, 137]},
        "one salt": {"salt": 133, "mask_value": "bee"},
    }.items():
        result[name] = layers.Hashing(num_bins=3, **options)(words)
    for mode in ("one_hot", "multi_hot", "count"):
        result[mode] = layers.Hashing(num_bins=4, output_mode=mode)(words)
        result[f"{mode} of one"] = layers.Hashing(num_bins=4, output_mode=mode)(words[:, :1])
    result["narrow"] = layers.Hashing(num_bins=1000, dtype="int32")(words)
    result["integers"] = layers.Hashing(num_bins=1000, mask_value=5)(tf.constant([[1, 5], [-7, 2**40]], tf.int64))
    result["floats"] = layers.Hashing(num_bins=1000)(tf.constant([1.0, 2.9, -3.5]))
    return result


@program
def crosses(tf):
    layers = tf.keras.layers
    a, b = tf.constant([["ant"], ["bee"], ["c" * 40], [""]]), tf.constant([[1], [-2], [3], [2**33]], tf.int64)
    c = tf.constant([["x"], ["y" * 100], ["z" * 17], ["w"]])
    result = {}
    for name, features in {"two": (a, b), "words": (a, c), "three": (a, b, c), "integers": (b, b)}.items():
        result[name] = layers.HashedCrossing(num_bins=1000)(features)
        result[f"{name} one_hot"] = layers.HashedCrossing(num_bins=5, output_mode="one_hot")(features)
    return {
        **result,
        "rows": layers.HashedCrossing(num_bins=77)((a[:, 0], b[:, 0])),
        "scalars": layers.HashedCrossing(num_bins=77)((a[0, 0], b[0, 0])),
    }


@program
def intervals(tf):
    layers = tf.keras.layers
    x = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]], np.float32)
    result = {}
    for mode in ("int", "one_hot", "multi_hot", "count"):
        layer = layers.Discretization(bin_boundaries=[0.0, 1.0, 2.0], output_mode=mode)
        result[mode] = [layer(x), layer(x[:, :1]), layer(x[0])]
    generator = np.random.RandomState(0)
    for name, options in {"coarse": {}, "fine": {"epsilon": 0.001}}.items():
        layer = layers.Discretization(num_bins=5, **options)
        layer.adapt(generator.standard_normal((300, 2)).astype(np.float32))
        batches = layers.Discretization(num_bins=4, **options)
        batches.adapt(
            tf.data.Dataset.from_tensor_slices(generator.uniform(size=(1000, 1)).astype(np.float32)).batch(64)
        )
        result[name] = [layer.bin_boundaries, batches.bin_boundaries, layer(x)]
    return result


@program
def categories(tf):
    result = {}
    for mode in ("one_hot", "multi_hot", "count"):
        layer = tf.keras.layers.CategoryEncoding(4, output_mode=mode)
        for name, x in {"vector": [0, 1, 3], "rows": [[0, 1], [3, 3]], "column": [[0], [1]], "single": [1]}.items():
            result[f"{mode} {name}"] = layer(tf.constant(x))
    weighted = tf.keras.layers.CategoryEncoding(4, output_mode="count")
    return {
        **result,
        "weighted": weighted(tf.constant([[0, 1], [3, 3]]), count_weights=tf.constant([[0.5, 2.0], [3.0, 0.25]])),
    }


TEXTS = ["The quick, brown Fox!", "jumps over the lazy dog.", "", "Fox & dog's fox -- the END"]


@program
def texts(tf):
    layers, result = tf.keras.layers, {}
    for name, options in {
        "plain": {},
        "few": {"max_tokens": 6},
        "length": {"output_sequence_length": 4},
        "lower": {"standardize": "lower"},
        "punctuation": {"standardize": "strip_punctuation"},
        "as it is": {"standardize": None},
        "characters": {"split": "character", "output_sequence_length": 5},
        "whole": {"split": None},
        "pairs": {"ngrams": 2},
        "pairs alone": {"ngrams": (2,), "output_sequence_length": 3},
        "ragged": {"ragged": True},
        "own": {
            "standardize": lambda x: tf.strings.regex_replace(x, "o", "0"),
            "split": lambda x: tf.strings.split(x, "e"),
        },
    }.items():
        layer = layers.TextVectorization(**options)
        layer.adapt(TEXTS)
        result[name] = [list(map(str, layer.get_vocabulary())), layer(TEXTS), layer.vocabulary_size()]
        if name != "whole":
            result[name].append(layer(tf.constant([["lazy fox"], ["cat"]])))
    for mode in ("multi_hot", "count", "tf_idf"):
        for padded in (False, True):
            layer = layers.TextVectorization(output_mode=mode, max_tokens=20, pad_to_max_tokens=padded)
            layer.adapt(tf.data.Dataset.from_tensor_slices(TEXTS).batch(3))
            result[f"{mode} {padded}"] = [list(map(str, layer.get_vocabulary())), np.float32(layer(TEXTS))]
    fixed = layers.TextVectorization(vocabulary=["fox", "dog", "the"], output_sequence_length=6)
    return {**result, "fixed": [fixed(TEXTS), list(map(str, fixed.get_vocabulary(include_special_tokens=False)))]}


@program
def texts_in_datasets(tf):
    layer = tf.keras.layers.TextVectorization(output_sequence_length=3)
    layer.adapt(TEXTS)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 2, 3])).batch(3)
    return [[layer(x), y] for x, y in dataset] + [[x, y] for x, y in dataset.map(lambda x, y: (layer(x), y))]


@program
def pieces_of_strings(tf):
    strings = tf.constant(["ab cd  e", "", " x "])
    result = {
        "split": tf.strings.split(strings),
        "separator": tf.strings.split(strings, " "),
        "once": tf.strings.split(strings, " ", maxsplit=1),
        "matrix": tf.strings.split([["a b", "c"], ["", "d e f"]]),
        "one": tf.strings.split("a b c"),
        "bytes": tf.strings.bytes_split(strings),
        "characters": tf.strings.unicode_split(["héllo", "", "日本\n"], "UTF-8"),
        "invalid": tf.strings.unicode_split([b"a\xffb", b"\xc3"], "UTF-8"),
    }
    words = tf.strings.split(["a b c", "d", "", "e f"])
    for name, options in {
        "two": {"ngram_width": 2},
        "to three": {"ngram_width": [1, 2, 3]},
        "padded": {"ngram_width": [2, 3], "pad_values": ("<", ">")},
        "padded once": {"ngram_width": 3, "pad_values": ("<", ">"), "padding_width": 1, "separator": "|"},
    }.items():
        result[f"ngrams {name}"] = tf.strings.ngrams(words, **options)
    result["joined"] = tf.strings.reduce_join(words, axis=-1, separator="-")
    result["kept"] = tf.strings.reduce_join(words, axis=1, keepdims=True)
    result["upper"] = tf.strings.upper(words)
    result["length"] = tf.strings.length(words)
    result["with"] = tf.strings.join([words, words], separator="+")
    result["deeper"] = tf.strings.split(tf.constant([["a b"], ["c d"]])).to_tensor()
    return result
