"""Record models of ai.onnx.ml in onnxruntime: `python tests/frontends/record_classical_models.py`.

Needs onnxruntime. Writes classical_models.npz: the results of each row. The rows, `ROWS`, are read by
test_onnx_classical.py, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

FILE = Path(__file__).parent / "classical_models.npz"
RNG = np.random.default_rng(24)
X = RNG.normal(size=(40, 6)).astype(np.float32)
X[::7, 2] = np.nan
X[:, 5] = RNG.integers(-2, 3, 40)
FULL = np.nan_to_num(X)
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def forest(kind, trees, depth, targets, *, modes=MODES[:1], tracks=False, positive=False, chain=False):
    """Return the attributes of random trees, which follow the longer branch at random. targets: of one leaf, a list
    from which each tree takes one in turn, or all of them if it is a tuple. kind: "target" or "class"."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    nodes["missing_value_tracks_true"] = []
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        pending, number = [(0, 0)], 0
        while pending:
            node, level = pending.pop(0)
            ends = level == depth or (level > 1 and not chain and RNG.random() < 0.2)
            mode = "LEAF" if ends else modes[RNG.integers(len(modes))]
            column = 5 if mode in MODES[4:] else int(RNG.integers(6))
            value = float(np.float32(RNG.integers(-2, 3) if column == 5 else RNG.normal()))
            yes, no = (0, 0) if ends else (number + 1, number + 2)
            for key, entry in zip(
                nodes, (tree, node, column, value, mode, yes, no, int(tracks and RNG.random() < 0.5))
            ):
                nodes[key].append(entry)
            if not ends:
                number += 2
                pending += [(yes, level + 1), (no, depth if chain else level + 1)]
                continue
            for target in targets if isinstance(targets, tuple) else [targets[tree % len(targets)]]:
                weight = float(np.float32(abs(RNG.normal()) if positive else RNG.normal()))
                for key, entry in zip(leaves, (tree, node, target, weight)):
                    leaves[key].append(entry)
    named = {f"nodes_{k}": v for k, v in nodes.items() if tracks or not k.startswith("missing")}
    return named | {f"{kind}_{k}": v for k, v in leaves.items()}


def sets_of_members():
    """Return a tree of version 5 that asks for members of sets, above two thresholds."""
    double = lambda *v: numpy_helper.from_array(np.asarray(v, np.float32))  # noqa: E731
    return {
        "nodes_splits": double(0.0, 0.25, -0.5, 0.0),
        "nodes_featureids": [5, 0, 1, 5],
        "nodes_modes": numpy_helper.from_array(np.asarray([6, 0, 3, 6], np.uint8)),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_falsenodeids": [2, 3, 1, 5],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falseleafs": [0, 0, 1, 1],
        "leaf_weights": double(1.5, -2.0, 3.0, 0.5, 4.0, -1.0),
        "leaf_targetids": [0, 1, 0, 1, 0, 1],
        "membership_values": double(-2.0, 1.0, np.nan, 2.0, -1.0, 0.0, np.nan),
        "tree_roots": [0],
        "n_targets": 2,
    }


TWO, THREE = {"classlabels_int64s": [5, 9]}, {"classlabels_int64s": [5, 9, 7]}
TEXTS = {"classlabels_strings": ["no", "yes", "both"]}
KERNEL = {
    "support_vectors": RNG.normal(size=30).astype(np.float32).tolist(),
    "kernel_params": [0.4, 0.5, 2.0],
    "rho": [0.1, -0.2, 0.3],
}
VECTORS = {"coefficients": RNG.normal(size=5).astype(np.float32).tolist()}
PAIRS = {"coefficients": RNG.normal(size=10).astype(np.float32).tolist(), "vectors_per_class": [2, 1, 2]}
PLANE = {"coefficients": RNG.normal(size=6).astype(np.float32).tolist(), "intercepts": [0.1]}
PLANES = {"coefficients": RNG.normal(size=18).astype(np.float32).tolist(), "intercepts": [0.1, 0.0, -0.3]}

# name: operator, inputs, attributes; classifiers have two results
ROWS = {
    "regressor": ("TreeEnsembleRegressor", [X], forest("target", 5, 4, [0]) | {"n_targets": 1}),
    "regressor_modes": ("TreeEnsembleRegressor", [X], forest("target", 9, 5, [0, 1], modes=MODES) | {"n_targets": 2}),
    "regressor_missing": (
        "TreeEnsembleRegressor",
        [X],
        forest("target", 9, 5, (0, 1), modes=MODES, tracks=True) | {"n_targets": 2, "base_values": [0.5, -1.0]},
    ),
    "regressor_deep": ("TreeEnsembleRegressor", [X], forest("target", 3, 60, [0], chain=True) | {"n_targets": 1}),
    "regressor_stumps": ("TreeEnsembleRegressor", [X], forest("target", 4, 0, [0]) | {"n_targets": 1}),
    "boosted_binary": (
        "TreeEnsembleClassifier",
        [X],
        forest("class", 8, 3, [0]) | TWO | {"post_transform": "LOGISTIC"},
    ),
    "boosted_base": (
        "TreeEnsembleClassifier",
        [X],
        forest("class", 8, 3, [0], modes=("BRANCH_LT",), tracks=True)
        | TWO
        | {"post_transform": "LOGISTIC", "base_values": [0.25]},
    ),
    "boosted_second": (
        "TreeEnsembleClassifier",
        [X],
        forest("class", 8, 3, [1]) | TWO | {"post_transform": "LOGISTIC"},
    ),
    "boosted_multiclass": (
        "TreeEnsembleClassifier",
        [X],
        forest("class", 9, 3, [0, 1, 2]) | THREE | {"post_transform": "SOFTMAX", "base_values": [0.1, 0.2, 0.3]},
    ),
    "forest_binary": ("TreeEnsembleClassifier", [X], forest("class", 3, 5, [0], positive=True) | TWO),
    "forest_multiclass": ("TreeEnsembleClassifier", [X], forest("class", 6, 5, (0, 1, 2), positive=True) | THREE),
    "forest_sparse": ("TreeEnsembleClassifier", [X], forest("class", 2, 4, [0, 2]) | THREE),
    "forest_texts": ("TreeEnsembleClassifier", [X], forest("class", 6, 5, (0, 1, 2), positive=True) | TEXTS),
    "forest_of_integers": (
        "TreeEnsembleClassifier",
        [X[:, 5:].astype(np.int64).repeat(6, 1)],
        forest("class", 6, 3, (0, 1, 2)) | THREE,
    ),
    "members": ("TreeEnsemble", [FULL], sets_of_members()),
    "linear": ("LinearRegressor", [FULL], PLANES | {"targets": 3}),
    "linear_binary": ("LinearClassifier", [FULL], PLANE | {"classlabels_ints": [5, 9], "post_transform": "LOGISTIC"}),
    "linear_multiclass": (
        "LinearClassifier",
        [FULL],
        PLANES | {"classlabels_ints": [5, 9, 7], "post_transform": "SOFTMAX"},
    ),
    "linear_zero": ("LinearClassifier", [FULL], PLANES | TEXTS | {"post_transform": "SOFTMAX_ZERO"}),
    "svm_rbf": ("SVMRegressor", [FULL], KERNEL | VECTORS | {"kernel_type": "RBF", "n_supports": 5}),
    "svm_poly": ("SVMRegressor", [FULL], KERNEL | VECTORS | {"kernel_type": "POLY", "n_supports": 5}),
    "svm_sigmoid": ("SVMRegressor", [FULL], KERNEL | VECTORS | {"kernel_type": "SIGMOID", "n_supports": 5}),
    "svm_outliers": (
        "SVMRegressor",
        [FULL],
        KERNEL | VECTORS | {"kernel_type": "RBF", "n_supports": 5, "one_class": 1},
    ),
    "svm_linear": (
        "SVMClassifier",
        [FULL],
        PLANES | {"rho": [0.2], "kernel_params": [0.0] * 3, "classlabels_ints": [5, 9, 7]},
    ),
    "svm_pair": (
        "SVMClassifier",
        [FULL],
        KERNEL | VECTORS | {"kernel_type": "RBF", "classlabels_ints": [5, 9], "vectors_per_class": [2, 3]},
    ),
    "svm_multiclass": ("SVMClassifier", [FULL], KERNEL | PAIRS | {"kernel_type": "RBF", "classlabels_ints": [5, 9, 7]}),
    "svm_pair_probabilities": (
        "SVMClassifier",
        [FULL],
        KERNEL
        | VECTORS
        | {"kernel_type": "RBF", "classlabels_ints": [5, 9], "vectors_per_class": [2, 3]}
        | {"prob_a": [-1.3], "prob_b": [0.2]},
    ),
    "svm_probabilities": (
        "SVMClassifier",
        [FULL],
        KERNEL
        | PAIRS
        | {"kernel_type": "RBF", "classlabels_ints": [5, 9, 7]}
        | {"prob_a": [-1.3, -4.0, -0.7], "prob_b": [0.2, -0.1, 0.4]},
    ),
    "normalizer_max": ("Normalizer", [FULL], {"norm": "MAX"}),
    "normalizer_l1": ("Normalizer", [FULL], {"norm": "L1"}),
    "normalizer_l2": ("Normalizer", [FULL], {"norm": "L2"}),
    "imputer": ("Imputer", [X], {"imputed_value_floats": [1.0, 2, 3, 4, 5, 6], "replaced_value_float": float("nan")}),
    "imputer_integers": (
        "Imputer",
        [X[:, 5:].astype(np.int64)],
        {"imputed_value_int64s": [7], "replaced_value_int64": -1},
    ),
    "columns": ("FeatureVectorizer", [FULL, X[:, 5:]], {"inputdimensions": [4, 2]}),
    "categories": ("OneHotEncoder", [X[:, 5:].astype(np.int64)], {"cats_int64s": [-2, 0, 1]}),
}


def model_of(name):
    """Return the model of a row, and its inputs by name."""
    operator, inputs, attributes = ROWS[name]
    feeds = {f"x{n}": np.asarray(x) for n, x in enumerate(inputs)}
    outputs = ["label", "scores"] if operator.endswith("Classifier") else ["y"]
    if operator == "SVMClassifier" and "intercepts" in attributes:
        attributes = {k: v for k, v in attributes.items() if k != "intercepts"}
    node = helper.make_node(operator, [*feeds], outputs, name="model", domain="ai.onnx.ml", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), [None, *x.shape[1:]])
        for n, x in feeds.items()
    ]
    texts = "classlabels_strings" in attributes
    kinds = {"label": 8 if texts else 7, "y": 7 if name == "imputer_integers" else 1}
    results = [helper.make_tensor_value_info(n, kinds.get(n, 1), None) for n in outputs]
    graph = helper.make_graph([node], name, infos, results)
    version = 5 if operator == "TreeEnsemble" else 3
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 9
    return model, feeds


def main():
    """Write the file."""
    import onnxruntime

    arrays = {}
    for name in ROWS:
        model, feeds = model_of(name)
        results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
        arrays |= {
            f"{name}.{n}": np.asarray(y).astype("S8") if np.asarray(y).dtype.kind == "O" else y
            for n, y in enumerate(results)
        }
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    main()
