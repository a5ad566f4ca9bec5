"""Programs on hash tables."""

import os
import tempfile

from tutorial_programs import program

LINES = "emerson\t10\nlake\t20\npalmer\t30\n"


def content(tf):
    return tf.lookup.KeyValueTensorInitializer(["a", "bc", "d"], tf.constant([5, 6, 7], tf.int64))


@program
def static_tables(tf):
    keys = tf.constant([["bc", "zz"], ["", "a"]])
    table = tf.lookup.StaticHashTable(content(tf), -1)
    names = tf.lookup.KeyValueTensorInitializer(tf.constant([3, 1], tf.int64), ["three", "one"])
    words = tf.lookup.StaticHashTable(names, "?")
    floats = tf.lookup.KeyValueTensorInitializer(["x", "y"], [0.5, 2.5])
    return {
        "words": [table.lookup(keys), table[tf.constant("d")], table.size()],
        "ragged": table.lookup(tf.ragged.constant([["a"], [], ["d", "e"]])),
        "numbers": words.lookup(tf.constant([1, 2, 3], tf.int64)),
        "floats": tf.lookup.StaticHashTable(floats, -1.0).lookup(tf.constant(["y", "q", "x"])),
        "exported": sorted(k.numpy().decode() for k in table.export()[0]),
        "mapped": list(tf.data.Dataset.from_tensor_slices(["a", "k"]).map(table.lookup)),
        "traced": tf.function(lambda x: table.lookup(x) + 1)(keys),
    }


@program
def vocabulary_tables(tf):
    first = tf.lookup.KeyValueTensorInitializer(["a", "bc", "d"], tf.constant([0, 1, 2], tf.int64))
    words = tf.lookup.StaticVocabularyTable(first, num_oov_buckets=7)
    numbers = tf.lookup.KeyValueTensorInitializer(tf.constant([3, 1], tf.int64), tf.constant([0, 1], tf.int64))
    integers = tf.lookup.StaticVocabularyTable(numbers, num_oov_buckets=5)
    narrow = tf.lookup.StaticVocabularyTable(numbers, num_oov_buckets=5, lookup_key_dtype=tf.int32)
    hashed = tf.lookup.StaticVocabularyTable(None, num_oov_buckets=100)
    return [
        words.lookup(tf.constant(["d", "zz", "", "a", "elephant"])),
        words.size(),
        integers.lookup(tf.constant([3, 17, -4, 1], tf.int64)),
        narrow.lookup(tf.constant([3, 17, -4, 1])),
        hashed.lookup(tf.constant(["d", "zz"])),
    ]


@program
def tables_of_files(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "names.txt")
        with open(path, "w") as file:
            file.write(LINES)
        whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        text = tf.lookup.TextFileInitializer
        lines = tf.lookup.StaticHashTable(text(path, tf.string, whole, tf.int64, number), -1)
        back = tf.lookup.StaticHashTable(text(path, tf.int64, number, tf.string, whole), "none")
        columns = tf.lookup.StaticHashTable(text(path, tf.string, 0, tf.int64, 1), -1)
        few = text(path, tf.string, 0, tf.int64, number, vocab_size=2, value_index_offset=10)
        few = tf.lookup.StaticHashTable(few, -1)
        names = tf.constant(["lake", "palmer", "moon"])
        return [
            lines.lookup(tf.constant(["lake\t20", "lake"])),
            back.lookup(tf.constant([2, 5], tf.int64)),
            columns.lookup(names),
            [few.lookup(names), few.size()],
        ]


@program
def mutable_tables(tf):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(["x", "y", "x"]), tf.constant([5, 6, 7], tf.int64))
    result = [table.lookup(tf.constant([["x", "q"], ["y", "x"]])), table.size()]

    @tf.function
    def count(word):
        table.insert(word, table.lookup(word) + 10)
        return table.lookup(word)

    result += [count(tf.constant(["x"])), count(tf.constant(["new"])), table.size()]
    table.remove(tf.constant(["x", "absent"]))
    keys, values = table.export()
    result += [sorted(zip([k.numpy().decode() for k in keys], [int(v) for v in values])), table.size()]
    rows = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0])
    rows.insert(tf.constant([4, 2], tf.int64), [[1.0, 2.0], [3.0, 4.0]])
    result.append(rows.lookup(tf.constant([2, 9, 4], tf.int64)))
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-5, deleted_key=-6)
    dense.insert(tf.constant([1], tf.int64), tf.constant([11], tf.int64))
    return [*result, dense.lookup(tf.constant([1, 2], tf.int64))]
