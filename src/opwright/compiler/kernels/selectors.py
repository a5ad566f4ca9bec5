"""The modules of kernel selectors by form: a table that `make families` writes (tests/lite/make_families.py).

Lives here: the table, in the order in which selectors are tried.
Not here: the registry of selectors (__init__.py).
"""

FAMILIES: dict[str, str] = {
    "attention": "Attention",
    "axis_scans": "ArgReduce Scan",
    "contractions_f32": "Contract",
    "contractions_winograd": "Contract",
    "contractions_int8": "Contract",
    "copies": "Checked Part",
    "depthwise": "Depthwise",
    "dynamic_sizes": "BroadcastSizes Distinct Expected ExpectedCount Numbers Places",
    "fixed_point": "FixedProduct",
    "fourier": "Fourier",
    "gather": "Gather GatherNd ReverseStart SliceAt UpdateSlice",
    "image_warp": "AffineImage AffinePoints CropMatrix PixelsAt",
    "lsh_projection": "Projection",
    "lstm": "Lstm",
    "lstm_int8": "LstmInt8",
    "maps": "Map",
    "matmul": "MatMul",
    "matmul_integer": "MatMul",
    "moves": "Move",
    "nms": "Suppression",
    "pooling": "MaxPlaces Pool PutInWindows ReduceWindow",
    "random_numbers": "Advanced Classes NormalPairs RandomWords",
    "reductions": "Reduce",
    "resize": "Resize",
    "rnn": "BasicLstm Gru Rnn",
    "row_band_fusion": "Banded",
    "rows": "RowPass",
    "scatter": "PutEntries ScatterNd Segments",
    "slices": "GatherSlices ScatterSlices",
    "sorting": "KeyPlaces Ordered",
    "ssd_postprocess": "Detection",
    "svdf": "Svdf",
    "tabled_softmax": "TabledSoftmax",
    "transposed_convolution": "TransposedContract",
    "user_kernels": "UserKernelCall",
}
