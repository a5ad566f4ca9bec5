/* Numbers of the file format that options of converted operators hold: {"T": 0} is TensorType_FLOAT32.

   Lives here: element types, padding, activations, operator codes. Not here: the file's tables; operators have no use for them. */
#ifndef OPWRIGHT_LITE_SCHEMA_H_
#define OPWRIGHT_LITE_SCHEMA_H_

#ifndef __cplusplus
#error "schema.h is for C++"
#endif

#include <cstdint>

namespace tflite {

/* TfLiteType has other numbers for the same types. */
enum TensorType : int8_t {
  TensorType_FLOAT32 = 0, TensorType_FLOAT16 = 1, TensorType_INT32 = 2, TensorType_UINT8 = 3, TensorType_INT64 = 4,
  TensorType_STRING = 5, TensorType_BOOL = 6, TensorType_INT16 = 7, TensorType_COMPLEX64 = 8, TensorType_INT8 = 9,
  TensorType_FLOAT64 = 10, TensorType_COMPLEX128 = 11, TensorType_UINT64 = 12, TensorType_RESOURCE = 13,
  TensorType_VARIANT = 14, TensorType_UINT32 = 15, TensorType_UINT16 = 16, TensorType_INT4 = 17,
  TensorType_BFLOAT16 = 18, TensorType_INT2 = 19, TensorType_UINT4 = 20, TensorType_FLOAT8_E4M3FN = 21,
  TensorType_FLOAT8_E5M2 = 22
};

enum Padding : int8_t { Padding_SAME = 0, Padding_VALID = 1 };

enum ActivationFunctionType : int8_t {
  ActivationFunctionType_NONE = 0, ActivationFunctionType_RELU = 1, ActivationFunctionType_RELU_N1_TO_1 = 2,
  ActivationFunctionType_RELU6 = 3, ActivationFunctionType_TANH = 4, ActivationFunctionType_SIGN_BIT = 5
};

/* The numbers are those of TfLiteBuiltinOperator. */
enum BuiltinOperator : int32_t {
  BuiltinOperator_ADD = 0, BuiltinOperator_AVERAGE_POOL_2D = 1, BuiltinOperator_CONCATENATION = 2,
  BuiltinOperator_CONV_2D = 3, BuiltinOperator_DEPTHWISE_CONV_2D = 4, BuiltinOperator_DEPTH_TO_SPACE = 5,
  BuiltinOperator_DEQUANTIZE = 6, BuiltinOperator_EMBEDDING_LOOKUP = 7, BuiltinOperator_FLOOR = 8,
  BuiltinOperator_FULLY_CONNECTED = 9, BuiltinOperator_HASHTABLE_LOOKUP = 10, BuiltinOperator_L2_NORMALIZATION = 11,
  BuiltinOperator_L2_POOL_2D = 12, BuiltinOperator_LOCAL_RESPONSE_NORMALIZATION = 13, BuiltinOperator_LOGISTIC = 14,
  BuiltinOperator_LSH_PROJECTION = 15, BuiltinOperator_LSTM = 16, BuiltinOperator_MAX_POOL_2D = 17,
  BuiltinOperator_MUL = 18, BuiltinOperator_RELU = 19, BuiltinOperator_RELU_N1_TO_1 = 20, BuiltinOperator_RELU6 = 21,
  BuiltinOperator_RESHAPE = 22, BuiltinOperator_RESIZE_BILINEAR = 23, BuiltinOperator_RNN = 24,
  BuiltinOperator_SOFTMAX = 25, BuiltinOperator_SPACE_TO_DEPTH = 26, BuiltinOperator_SVDF = 27,
  BuiltinOperator_TANH = 28, BuiltinOperator_CONCAT_EMBEDDINGS = 29, BuiltinOperator_SKIP_GRAM = 30,
  BuiltinOperator_CALL = 31, BuiltinOperator_CUSTOM = 32, BuiltinOperator_EMBEDDING_LOOKUP_SPARSE = 33,
  BuiltinOperator_PAD = 34, BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_RNN = 35, BuiltinOperator_GATHER = 36,
  BuiltinOperator_BATCH_TO_SPACE_ND = 37, BuiltinOperator_SPACE_TO_BATCH_ND = 38, BuiltinOperator_TRANSPOSE = 39,
  BuiltinOperator_MEAN = 40, BuiltinOperator_SUB = 41, BuiltinOperator_DIV = 42, BuiltinOperator_SQUEEZE = 43,
  BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_LSTM = 44, BuiltinOperator_STRIDED_SLICE = 45,
  BuiltinOperator_BIDIRECTIONAL_SEQUENCE_RNN = 46, BuiltinOperator_EXP = 47, BuiltinOperator_TOPK_V2 = 48,
  BuiltinOperator_SPLIT = 49, BuiltinOperator_LOG_SOFTMAX = 50, BuiltinOperator_DELEGATE = 51,
  BuiltinOperator_BIDIRECTIONAL_SEQUENCE_LSTM = 52, BuiltinOperator_CAST = 53, BuiltinOperator_PRELU = 54,
  BuiltinOperator_MAXIMUM = 55, BuiltinOperator_ARG_MAX = 56, BuiltinOperator_MINIMUM = 57, BuiltinOperator_LESS = 58,
  BuiltinOperator_NEG = 59, BuiltinOperator_PADV2 = 60, BuiltinOperator_GREATER = 61,
  BuiltinOperator_GREATER_EQUAL = 62, BuiltinOperator_LESS_EQUAL = 63, BuiltinOperator_SELECT = 64,
  BuiltinOperator_SLICE = 65, BuiltinOperator_SIN = 66, BuiltinOperator_TRANSPOSE_CONV = 67,
  BuiltinOperator_SPARSE_TO_DENSE = 68, BuiltinOperator_TILE = 69, BuiltinOperator_EXPAND_DIMS = 70,
  BuiltinOperator_EQUAL = 71, BuiltinOperator_NOT_EQUAL = 72, BuiltinOperator_LOG = 73, BuiltinOperator_SUM = 74,
  BuiltinOperator_SQRT = 75, BuiltinOperator_RSQRT = 76, BuiltinOperator_SHAPE = 77, BuiltinOperator_POW = 78,
  BuiltinOperator_ARG_MIN = 79, BuiltinOperator_FAKE_QUANT = 80, BuiltinOperator_REDUCE_PROD = 81,
  BuiltinOperator_REDUCE_MAX = 82, BuiltinOperator_PACK = 83, BuiltinOperator_LOGICAL_OR = 84,
  BuiltinOperator_ONE_HOT = 85, BuiltinOperator_LOGICAL_AND = 86, BuiltinOperator_LOGICAL_NOT = 87,
  BuiltinOperator_UNPACK = 88, BuiltinOperator_REDUCE_MIN = 89, BuiltinOperator_FLOOR_DIV = 90,
  BuiltinOperator_REDUCE_ANY = 91, BuiltinOperator_SQUARE = 92, BuiltinOperator_ZEROS_LIKE = 93,
  BuiltinOperator_FILL = 94, BuiltinOperator_FLOOR_MOD = 95, BuiltinOperator_RANGE = 96,
  BuiltinOperator_RESIZE_NEAREST_NEIGHBOR = 97, BuiltinOperator_LEAKY_RELU = 98,
  BuiltinOperator_SQUARED_DIFFERENCE = 99, BuiltinOperator_MIRROR_PAD = 100, BuiltinOperator_ABS = 101,
  BuiltinOperator_SPLIT_V = 102, BuiltinOperator_UNIQUE = 103, BuiltinOperator_CEIL = 104,
  BuiltinOperator_REVERSE_V2 = 105, BuiltinOperator_ADD_N = 106, BuiltinOperator_GATHER_ND = 107,
  BuiltinOperator_COS = 108, BuiltinOperator_WHERE = 109, BuiltinOperator_RANK = 110, BuiltinOperator_ELU = 111,
  BuiltinOperator_REVERSE_SEQUENCE = 112, BuiltinOperator_MATRIX_DIAG = 113, BuiltinOperator_QUANTIZE = 114,
  BuiltinOperator_MATRIX_SET_DIAG = 115, BuiltinOperator_ROUND = 116, BuiltinOperator_HARD_SWISH = 117,
  BuiltinOperator_IF = 118, BuiltinOperator_WHILE = 119, BuiltinOperator_NON_MAX_SUPPRESSION_V4 = 120,
  BuiltinOperator_NON_MAX_SUPPRESSION_V5 = 121, BuiltinOperator_SCATTER_ND = 122, BuiltinOperator_SELECT_V2 = 123,
  BuiltinOperator_DENSIFY = 124, BuiltinOperator_SEGMENT_SUM = 125, BuiltinOperator_BATCH_MATMUL = 126,
  BuiltinOperator_PLACEHOLDER_FOR_GREATER_OP_CODES = 127, BuiltinOperator_CUMSUM = 128,
  BuiltinOperator_CALL_ONCE = 129, BuiltinOperator_BROADCAST_TO = 130, BuiltinOperator_RFFT2D = 131,
  BuiltinOperator_CONV_3D = 132, BuiltinOperator_IMAG = 133, BuiltinOperator_REAL = 134,
  BuiltinOperator_COMPLEX_ABS = 135, BuiltinOperator_HASHTABLE = 136, BuiltinOperator_HASHTABLE_FIND = 137,
  BuiltinOperator_HASHTABLE_IMPORT = 138, BuiltinOperator_HASHTABLE_SIZE = 139, BuiltinOperator_REDUCE_ALL = 140,
  BuiltinOperator_CONV_3D_TRANSPOSE = 141, BuiltinOperator_VAR_HANDLE = 142, BuiltinOperator_READ_VARIABLE = 143,
  BuiltinOperator_ASSIGN_VARIABLE = 144, BuiltinOperator_BROADCAST_ARGS = 145,
  BuiltinOperator_RANDOM_STANDARD_NORMAL = 146, BuiltinOperator_BUCKETIZE = 147, BuiltinOperator_RANDOM_UNIFORM = 148,
  BuiltinOperator_MULTINOMIAL = 149, BuiltinOperator_GELU = 150, BuiltinOperator_DYNAMIC_UPDATE_SLICE = 151,
  BuiltinOperator_RELU_0_TO_1 = 152, BuiltinOperator_UNSORTED_SEGMENT_PROD = 153,
  BuiltinOperator_UNSORTED_SEGMENT_MAX = 154, BuiltinOperator_UNSORTED_SEGMENT_SUM = 155, BuiltinOperator_ATAN2 = 156,
  BuiltinOperator_UNSORTED_SEGMENT_MIN = 157, BuiltinOperator_SIGN = 158, BuiltinOperator_BITCAST = 159,
  BuiltinOperator_BITWISE_XOR = 160, BuiltinOperator_RIGHT_SHIFT = 161, BuiltinOperator_STABLEHLO_LOGISTIC = 162,
  BuiltinOperator_STABLEHLO_ADD = 163, BuiltinOperator_STABLEHLO_DIVIDE = 164,
  BuiltinOperator_STABLEHLO_MULTIPLY = 165, BuiltinOperator_STABLEHLO_MAXIMUM = 166,
  BuiltinOperator_STABLEHLO_RESHAPE = 167, BuiltinOperator_STABLEHLO_CLAMP = 168,
  BuiltinOperator_STABLEHLO_CONCATENATE = 169, BuiltinOperator_STABLEHLO_BROADCAST_IN_DIM = 170,
  BuiltinOperator_STABLEHLO_CONVOLUTION = 171, BuiltinOperator_STABLEHLO_SLICE = 172,
  BuiltinOperator_STABLEHLO_CUSTOM_CALL = 173, BuiltinOperator_STABLEHLO_REDUCE = 174,
  BuiltinOperator_STABLEHLO_ABS = 175, BuiltinOperator_STABLEHLO_AND = 176, BuiltinOperator_STABLEHLO_COSINE = 177,
  BuiltinOperator_STABLEHLO_EXPONENTIAL = 178, BuiltinOperator_STABLEHLO_FLOOR = 179,
  BuiltinOperator_STABLEHLO_LOG = 180, BuiltinOperator_STABLEHLO_MINIMUM = 181,
  BuiltinOperator_STABLEHLO_NEGATE = 182, BuiltinOperator_STABLEHLO_OR = 183, BuiltinOperator_STABLEHLO_POWER = 184,
  BuiltinOperator_STABLEHLO_REMAINDER = 185, BuiltinOperator_STABLEHLO_RSQRT = 186,
  BuiltinOperator_STABLEHLO_SELECT = 187, BuiltinOperator_STABLEHLO_SUBTRACT = 188,
  BuiltinOperator_STABLEHLO_TANH = 189, BuiltinOperator_STABLEHLO_SCATTER = 190,
  BuiltinOperator_STABLEHLO_COMPARE = 191, BuiltinOperator_STABLEHLO_CONVERT = 192,
  BuiltinOperator_STABLEHLO_DYNAMIC_SLICE = 193, BuiltinOperator_STABLEHLO_DYNAMIC_UPDATE_SLICE = 194,
  BuiltinOperator_STABLEHLO_PAD = 195, BuiltinOperator_STABLEHLO_IOTA = 196,
  BuiltinOperator_STABLEHLO_DOT_GENERAL = 197, BuiltinOperator_STABLEHLO_REDUCE_WINDOW = 198,
  BuiltinOperator_STABLEHLO_SORT = 199, BuiltinOperator_STABLEHLO_WHILE = 200, BuiltinOperator_STABLEHLO_GATHER = 201,
  BuiltinOperator_STABLEHLO_TRANSPOSE = 202, BuiltinOperator_DILATE = 203,
  BuiltinOperator_STABLEHLO_RNG_BIT_GENERATOR = 204, BuiltinOperator_REDUCE_WINDOW = 205,
  BuiltinOperator_STABLEHLO_COMPOSITE = 206, BuiltinOperator_STABLEHLO_SHIFT_LEFT = 207,
  BuiltinOperator_STABLEHLO_CBRT = 208, BuiltinOperator_STABLEHLO_CASE = 209,
  BuiltinOperator_MIN = BuiltinOperator_ADD, BuiltinOperator_MAX = BuiltinOperator_STABLEHLO_CASE
};

}  // namespace tflite

#endif
