"""Programs on files of columns, saved datasets and parts of datasets."""

import os
import tempfile

import numpy as np
from tutorial_programs import program

TABLE = 'id,age,name,score,big\n1,37,ada,1.5,5000000000\n2,,"gra,ce",2,1\n3,5,"two\nlines",1e40,7\n4,8,,-3,0\n'


def write(folder, name, text=TABLE):
    path = os.path.join(folder, name)
    with open(path, "w", newline="") as file:
        file.write(text)
    return path


def batches(dataset):
    parts = [part if isinstance(part, tuple) else (part,) for part in dataset]
    return [[dict(p) if isinstance(p, dict) else p for p in part] for part in parts]


@program
def csv_batches(tf):
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "a.csv")
        for name, options in {
            "plain": {},
            "label": {"label_name": "score"},
            "chosen": {"select_columns": ["id", "name"]},
            "by number": {"select_columns": [1, 3], "column_defaults": [[-1], tf.float32]},
            "defaults": {"column_defaults": [[0], [7], ["none"], [0.0], tf.string]},
            "names": {"column_names": ["a", "b", "c", "d", "e"]},
            "rows": {"num_rows_for_inference": 1, "select_columns": ["id", "big"]},
        }.items():
            if name == "rows":
                path = write(folder, "b.csv", "id,big\n1,2\n3,4\n")
            dataset = tf.data.experimental.make_csv_dataset(path, 3, num_epochs=1, shuffle=False, **options)
            result[name] = batches(dataset)
        other = write(folder, "c.txt", "1;x\n2;NA\n")
        dataset = tf.data.experimental.make_csv_dataset(
            [other], 2, column_names=["n", "t"], header=False, field_delim=";", na_value="NA", shuffle=False
        )
        result["endless"] = batches(dataset.take(2))
    return result


@program
def csv_records(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "a.csv", "id,age,name\n1,37,ada\n2,,x\n")
        defaults = [tf.int32, [7], tf.string]
        dataset = tf.data.experimental.CsvDataset(path, defaults, header=True)
        chosen = tf.data.experimental.CsvDataset(path, [[5], ["-"]], header=True, select_cols=[1, 2])
        without = tf.data.experimental.CsvDataset(path, [tf.int64, tf.string], header=True, exclude_cols=[1])
        twice = tf.data.experimental.CsvDataset([path, path], [tf.float64, [0.5], tf.string], header=True)
        return [list(dataset), list(chosen), list(without), list(twice)]


@program
def saved(tf):
    result = []
    with tempfile.TemporaryDirectory() as folder:
        source = tf.data.Dataset.from_tensor_slices(({"a": [1, 2, 3], "b": ["x", "", "z"]}, np.eye(3)))
        for i, dataset in enumerate([source, source.batch(2), tf.data.Dataset.range(4).skip(9)]):
            path = os.path.join(folder, str(i))
            dataset.save(path)
            again = tf.data.Dataset.load(path)
            elements = [[*sorted(e[0].items()), e[1]] if isinstance(e, tuple) else e for e in again]
            result.append([elements, int(again.cardinality())])
        words = tf.data.Dataset.from_tensor_slices(["a b", "c", "d e f"]).batch(2).map(tf.strings.split)
        words.save(os.path.join(folder, "words"))
        result.append(list(tf.data.Dataset.load(os.path.join(folder, "words"))))
        kept = tf.data.Dataset.range(3).snapshot(os.path.join(folder, "snapshot"))
        result.append([list(kept), list(kept)])
    return result


@program
def parts(tf):
    split, result = tf.keras.utils.split_dataset, {}
    for name, options in {
        "share": {"left_size": 0.7},
        "right": {"right_size": 0.25},
        "numbers": {"left_size": 3, "right_size": 2},
        "both": {"left_size": 0.4, "right_size": 0.3},
        "shuffled": {"left_size": 6, "shuffle": True, "seed": 4},
    }.items():
        left, right = split(tf.data.Dataset.range(10), **options)
        result[name] = [[int(x) for x in left], [int(x) for x in right], len(left), len(right)]
    left, right = split((np.arange(6).reshape(3, 2), np.array([1.0, 2.0, 3.0])), left_size=2)
    return {**result, "pairs": [list(left), list(right)]}
