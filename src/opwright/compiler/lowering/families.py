"""Which module lowers which operators: a table that `make families` writes (tests/lite/make_families.py).

Lives here: the table. Names that several dialects use have a prefix: "custom:" of shipped custom operators, "lite:" of
builtins.
Not here: looking up the rule of an operator (registry.py).
"""

FAMILIES: dict[str, str] = {
    "arithmetic": (
        "ADD ATAN2 ClipByValue DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL MAXIMUM MINIMUM MUL "
        "Maximum Minimum NOT_EQUAL POW SELECT SELECT_V2 SQUARED_DIFFERENCE STABLEHLO_ADD STABLEHLO_AND "
        "STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_SHIFT_LEFT SUB Select"
    ),
    "colors": "AdjustHue AdjustSaturation HSVToRGB RGBToHSV",
    "composed_functions": (
        "AdjustContrast ApproximateEqual ConfusionMatrix Cross InTopK MulNoNan SequenceMask Xlog1py Xlogy"
    ),
    "contractions": "CONV_2D Conv2D DEPTHWISE_CONV_2D DepthwiseConv2dNative FULLY_CONNECTED",
    "control_flow": "Case If Undefined While",
    "ctc": "CTCLoss",
    "data_movement": (
        "BATCH_TO_SPACE_ND BatchToSpaceND CONCATENATION Concat DEPTH_TO_SPACE DepthToSpace MIRROR_PAD MirrorPad "
        "MirrorPadGrad PACK PAD Pack Pad Roll SPACE_TO_BATCH_ND SPACE_TO_DEPTH SpaceToBatchND SpaceToDepth TILE Tile "
        "custom:Roll"
    ),
    "diagonals": "MatrixBandPart MatrixDiag MatrixDiagPart MatrixSetDiag",
    "fake_quantization": "FAKE_QUANT FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel",
    "fourier": (
        "FFT FFT2D FFT3D FFTND IFFT IFFT2D IFFT3D IFFTND IRFFT IRFFT2D IRFFT3D IRFFTND RFFT RFFT2D RFFT3D RFFTND "
        "custom:IRFFT2D custom:Irfft2d custom:RFFT2D custom:Rfft2d lite:RFFT2D"
    ),
    "frames": "ExtractImagePatches Frame OverlapAndAdd",
    "functions": (
        "ABS ADD_N Abs Acos Acosh Add AddN Asin Asinh Atan Atan2 Atanh BITWISE_XOR BesselI0 BesselI0e BesselI1 "
        "BesselI1e BesselK0 BesselK0e BesselK1 BesselK1e BiasAdd BitwiseAnd BitwiseOr BitwiseXor CEIL COS Ceil Cos "
        "Cosh Digamma DivNoNan ELU EXP Elu Equal Erf Erfc Erfinv Exp Expm1 FLOOR Floor FloorDiv FloorMod GELU Gelu "
        "Greater GreaterEqual HARD_SWISH Invert IsFinite IsInf IsNan LEAKY_RELU LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR "
        "LOGISTIC LeakyRelu LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Mul NEG Ndtri "
        "Neg NotEqual PRELU Polygamma Pow RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RIGHT_SHIFT ROUND RSQRT RealDiv "
        "Reciprocal Relu Relu6 RightShift Rint Round Rsqrt SIGN SIN SQRT SQUARE STABLEHLO_COMPOSITE Selu Sigmoid Sign "
        "Sin Sinh Softplus Softsign Sqrt Square SquaredDifference Sub TANH Tan Tanh TruncateDiv TruncateMod Xdivy "
        "ZEROS_LIKE custom:Atan2 custom:Sign user"
    ),
    "gather_scatter": (
        "DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE GATHER GATHER_ND Gather GatherNd "
        "HASHTABLE_LOOKUP LSH_PROJECTION SCATTER_ND SPARSE_TO_DENSE STABLEHLO_GATHER STABLEHLO_SCATTER ScatterNd "
        "TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate "
        "custom:odml.update_external_kv_cache"
    ),
    "gradients": (
        "AvgPool3DGrad AvgPoolGrad Conv2DBackpropFilter Conv2DBackpropInput DepthwiseConv2dNativeBackpropFilter "
        "DepthwiseConv2dNativeBackpropInput GatherGrad MaxPool3DGrad MaxPoolGrad TRANSPOSE_CONV "
        "custom:Convolution2DTransposeBias"
    ),
    "images": (
        "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR ResizeBilinear "
        "ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad custom:DenseImageWarp "
        "custom:Landmarks2TransformMatrix custom:Resampler custom:TFLite_Detection_PostProcess "
        "custom:TransformLandmarks custom:TransformTensor custom:TransformTensorBilinear"
    ),
    "lstm": (
        "BIDIRECTIONAL_SEQUENCE_LSTM GRUSequence GRUSequenceGrad LSTM LSTMSequence LSTMSequenceGrad "
        "UNIDIRECTIONAL_SEQUENCE_LSTM"
    ),
    "matmul": "BATCH_MATMUL Einsum MatMul custom:odml.scaled_dot_product_attention",
    "matrices": "Cholesky LogMatrixDeterminant Lu MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve",
    "normalization": (
        "ClassLabels FusedBatchNorm L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION LOG_SOFTMAX LRN LayerNorm LogSoftmax "
        "SOFTMAX Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits "
        "custom:MeanVarianceNormalization"
    ),
    "padding": (
        "BITCAST BUCKETIZE Bitcast DILATE FILL Fill MATRIX_DIAG MATRIX_SET_DIAG ONE_HOT OneHot PADV2 RANGE "
        "STABLEHLO_PAD"
    ),
    "pooling": (
        "AVERAGE_POOL_2D AvgPool L2_POOL_2D MAX_POOL_2D MaxPool REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW "
        "custom:MaxPoolWithArgmax custom:MaxPoolingWithArgmax2D custom:MaxUnpooling2D"
    ),
    "reductions": (
        "ARG_MAX ARG_MIN All Any ArgMax ArgMin BROADCAST_ARGS BiasAddGrad EuclideanNorm L2Loss LowerBound MEAN Max "
        "Mean Min Prod RANK REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD REVERSE_SEQUENCE ReverseSequence "
        "SEGMENT_SUM SHAPE SUM Sort Sum SumToLike TOPK_V2 TileGrad TopK UNIQUE UNSORTED_SEGMENT_MAX "
        "UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM UnsortedSegmentMax UnsortedSegmentMin "
        "UnsortedSegmentProd UnsortedSegmentSum UpperBound WHERE custom:BroadcastGradientArgs"
    ),
    "rnn": (
        "BIDIRECTIONAL_SEQUENCE_RNN DynamicGru RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN custom:UNIDIRECTIONAL_SEQUENCE_GRU"
    ),
    "scans": "CUMSUM Cumprod Cumsum CumulativeLogsumexp LinearRecurrence ShiftByOne",
    "spectral": (
        "COMPLEX_ABS Complex ComplexAbs IMAG Imag REAL Real custom:AudioSpectrogram custom:Complex custom:Mfcc "
        "custom:aeq.hadamard_rotation"
    ),
    "stateful": (
        "ASSIGN_VARIABLE CALL_ONCE MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM READ_VARIABLE "
        "STABLEHLO_RNG_BIT_GENERATOR StatelessMultinomial StatelessRandomNormal StatelessRandomUniform "
        "StatelessRandomUniformFullInt StatelessRandomUniformInt custom:Multinomial custom:RandomStandardNormal "
        "custom:RandomUniform custom:RandomUniformInt custom:odml.update_kv_cache"
    ),
    "statistics": "DenseBincount HistogramFixedWidth",
    "tensor_lists": (
        "ListAdd ListFromTensor ListGather ListGet ListLength ListPop ListPush ListReserve ListResize ListSet "
        "ListStack ListUnset ListZerosLike"
    ),
    "type_conversion": "CAST Cast DENSIFY DEQUANTIZE QUANTIZE custom:NumericVerify custom:Table",
    "updates": "AssignAddVariable AssignSubVariable UpdateRows UpdateVariable",
    "views": (
        "BROADCAST_TO BroadcastTo EXPAND_DIMS EnsureShape ExpandDims RESHAPE REVERSE_V2 Reshape Reverse SLICE SPLIT "
        "SPLIT_V SQUEEZE STRIDED_SLICE Slice Split SplitV Squeeze StridedSlice StridedSliceGrad TRANSPOSE Transpose "
        "UNPACK Unpack"
    ),
    "volumes": (
        "AvgPool3D CONV_3D CONV_3D_TRANSPOSE Conv3D Conv3DBackpropFilter Conv3DBackpropInput MaxPool3D "
        "custom:AveragePool3D custom:AvgPool3D custom:MaxPool3D"
    ),
}
