/* Numbers of the file format that options of converted operators hold: {"T": 0} is TensorType_FLOAT32.

   Lives here: element types, padding, activations. Not here: the file's tables; operators have no use for them. */
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

enum BuiltinOperator : int32_t {}; /* the numbers are those of TfLiteBuiltinOperator */

}  // namespace tflite

#endif
