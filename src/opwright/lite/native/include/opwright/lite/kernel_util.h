/* C++ helpers for operators of the interface with public fields.

   Small ones are here whole; those that take arithmetic are in the run time, under the same names. */
#ifndef OPWRIGHT_LITE_KERNEL_UTIL_H_
#define OPWRIGHT_LITE_KERNEL_UTIL_H_

#ifndef __cplusplus
#error "kernel_util.h is for C++: from C, use the functions of tensorflow/lite/c/common.h and the fields of the structs"
#endif

#include <initializer_list>
#include <limits>
#include <string>

#include "builtin_op_data.h"
#include "common.h"
#include "helpers.h"

namespace tflite {

/* --- tensors of a node --------------------------------------------------------------------------------------------- */

inline int NumInputs(const TfLiteNode* node) { return node->inputs == nullptr ? 0 : node->inputs->size; }
inline int NumOutputs(const TfLiteNode* node) { return node->outputs == nullptr ? 0 : node->outputs->size; }
inline int NumIntermediates(const TfLiteNode* node) {
  return node->intermediates == nullptr ? 0 : node->intermediates->size;
}

/* Null where an optional input was left out, or there are not as many. */
inline const TfLiteTensor* GetInput(const TfLiteContext* context, const TfLiteNode* node, int index) {
  return ow_tensor_at(context, node->inputs, index);
}
inline const TfLiteTensor* GetOptionalInputTensor(const TfLiteContext* context, const TfLiteNode* node, int index) {
  return ow_tensor_at(context, node->inputs, index);
}
/* An input that keeps its values from run to run; null for others. */
inline TfLiteTensor* GetVariableInput(TfLiteContext* context, const TfLiteNode* node, int index) {
  TfLiteTensor* tensor = ow_tensor_at(context, node->inputs, index);
  return tensor != nullptr && tensor->is_variable ? tensor : nullptr;
}
inline TfLiteTensor* GetOutput(TfLiteContext* context, const TfLiteNode* node, int index) {
  return ow_tensor_at(context, node->outputs, index);
}
inline TfLiteTensor* GetTemporary(TfLiteContext* context, const TfLiteNode* node, int index) {
  return ow_tensor_at(context, node->temporaries, index);
}
inline TfLiteTensor* GetIntermediates(TfLiteContext* context, const TfLiteNode* node, int index) {
  return ow_tensor_at(context, node->intermediates, index);
}

/* The same with a report and kTfLiteError in place of null. */
inline TfLiteStatus GetInputSafe(const TfLiteContext* context, const TfLiteNode* node, int index,
                                 const TfLiteTensor** tensor) {
  TfLiteTensor* found = nullptr;
  const TfLiteStatus status = ow_tensor_or_error(context, node->inputs, index, "input", &found);
  *tensor = found;
  return status;
}
inline TfLiteStatus GetOutputSafe(const TfLiteContext* context, const TfLiteNode* node, int index,
                                  TfLiteTensor** tensor) {
  return ow_tensor_or_error(context, node->outputs, index, "output", tensor);
}
inline TfLiteStatus GetTemporarySafe(const TfLiteContext* context, const TfLiteNode* node, int index,
                                     TfLiteTensor** tensor) {
  return ow_tensor_or_error(context, node->temporaries, index, "temporary", tensor);
}
inline TfLiteStatus GetIntermediatesSafe(const TfLiteContext* context, const TfLiteNode* node, int index,
                                         TfLiteTensor** tensor) {
  return ow_tensor_or_error(context, node->intermediates, index, "intermediate", tensor);
}

/* --- shapes -------------------------------------------------------------------------------------------------------- */

inline int NumDimensions(const TfLiteTensor* t) { return t->dims->size; }
inline int SizeOfDimension(const TfLiteTensor* t, int dim) { return t->dims->data[dim]; }

inline int64_t NumElements(const int* dims, int num_dims) {
  int64_t count = 1;
  for (int i = 0; i < num_dims; ++i) count *= dims[i];
  return count;
}
inline int64_t NumElements(const TfLiteIntArray* dims) { return NumElements(dims->data, dims->size); }
inline int64_t NumElements(const TfLiteTensor* t) { return NumElements(t->dims); }

inline bool HaveSameShapes(const TfLiteTensor* input1, const TfLiteTensor* input2) {
  return ow_same_shapes(input1, input2) != 0;
}
inline bool HasUnspecifiedDimension(const TfLiteTensor* tensor) { return ow_has_unknown_size(tensor) != 0; }

inline TfLiteStatus CheckedShapeProduct(TfLiteContext* context, const int* dims, int num_dims, const char* what,
                                        size_t& product) {
  return ow_shape_product(context, dims, num_dims < 0 ? 0 : static_cast<size_t>(num_dims), what, &product);
}
inline TfLiteStatus CheckedShapeProduct(TfLiteContext* context, std::initializer_list<int> dims, const char* what,
                                        size_t& product) {
  return ow_shape_product(context, dims.begin(), dims.size(), what, &product);
}
inline TfLiteStatus CheckedShapeProductToInt(TfLiteContext* context, std::initializer_list<int> dims, const char* what,
                                             int& product) {
  size_t wide = 0;
  TF_LITE_ENSURE_STATUS(ow_shape_product(context, dims.begin(), dims.size(), what, &wide));
  TF_LITE_ENSURE_MSG(context, wide <= static_cast<size_t>(std::numeric_limits<int>::max()),
                     "the product of the sizes is larger than an int");
  product = static_cast<int>(wide);
  return kTfLiteOk;
}

/* The shape that tensors broadcast to, as a new array. */
TFL_CAPI_EXPORT TfLiteStatus CalculateShapeForBroadcast(TfLiteContext* context, const TfLiteTensor* input1,
                                                        const TfLiteTensor* input2, TfLiteIntArray** output_shape);
TFL_CAPI_EXPORT TfLiteStatus CalculateShapeForBroadcast(TfLiteContext* context, const TfLiteTensor* input1,
                                                        const TfLiteTensor* input2, const TfLiteTensor* input3,
                                                        TfLiteIntArray** output_shape);
/* The shape that a vector of int32 holds, as a new array. */
TFL_CAPI_EXPORT TfLiteStatus GetOutputShapeFromInput(TfLiteContext* context, const TfLiteTensor* input,
                                                     TfLiteIntArray** output_shape);

inline std::string GetShapeDebugString(const TfLiteIntArray* shape) {
  std::string text = "[";
  for (int i = 0; shape != nullptr && i < shape->size; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape->data[i]);
  }
  return text + "]";
}
inline std::string GetTensorDebugString(const TfLiteTensor* tensor) {
  return std::string("{") + TfLiteTypeGetName(tensor->type) + ", " + GetShapeDebugString(tensor->dims) + "}";
}

/* --- memory and types ---------------------------------------------------------------------------------------------- */

inline bool IsConstantTensor(const TfLiteTensor* tensor) { return tensor->allocation_type == kTfLiteMmapRo; }
inline bool IsConstantOrPersistentTensor(const TfLiteTensor* tensor) {
  return IsConstantTensor(tensor) || tensor->allocation_type == kTfLitePersistentRo;
}
inline bool IsDynamicTensor(const TfLiteTensor* tensor) { return tensor->allocation_type == kTfLiteDynamic; }

/* From now on its shape and memory come from ResizeTensor in invoke. */
inline void SetTensorToDynamic(TfLiteTensor* tensor) {
  if (tensor->allocation_type != kTfLiteDynamic) {
    TfLiteTensorDataFree(tensor);
    tensor->allocation_type = kTfLiteDynamic;
  }
}
inline void SetTensorToPersistentRo(TfLiteTensor* tensor) {
  if (tensor->allocation_type != kTfLitePersistentRo) {
    TfLiteTensorDataFree(tensor);
    tensor->allocation_type = kTfLitePersistentRo;
  }
}

/* Weights of 8 bits (or 4) beside an input of float32. */
inline bool IsHybridOp(const TfLiteTensor* input, const TfLiteTensor* weight) {
  return input->type == kTfLiteFloat32 &&
         (weight->type == kTfLiteUInt8 || weight->type == kTfLiteInt8 || weight->type == kTfLiteInt4);
}

inline bool IsMobilePlatform() { return ow_is_mobile() != 0; }

/* Bits and bytes of an element; 0 where the type has no fixed size. */
TFL_CAPI_EXPORT int TfLiteTypeGetSizeBits(TfLiteType type);
TFL_CAPI_EXPORT int TfLiteTypeGetSize(TfLiteType type);

/* --- activations and quantisation ---------------------------------------------------------------------------------- */

template <typename T>
void CalculateActivationRange(TfLiteFusedActivation activation, T* activation_min, T* activation_max) {
  *activation_min = std::numeric_limits<T>::lowest();
  *activation_max = std::numeric_limits<T>::max();
  if (activation == kTfLiteActRelu || activation == kTfLiteActRelu6) *activation_min = 0;
  if (activation == kTfLiteActReluN1To1) *activation_min = static_cast<T>(-1);
  if (activation == kTfLiteActRelu6) *activation_max = 6;
  if (activation == kTfLiteActReluN1To1) *activation_max = 1;
}

TFL_CAPI_EXPORT TfLiteStatus CalculateActivationRangeQuantized(TfLiteContext* context, TfLiteFusedActivation activation,
                                                               TfLiteTensor* output, int* act_min, int* act_max);

/* input scale * filter scale / output scale. bias: whose scale is checked against the first two. */
TFL_CAPI_EXPORT TfLiteStatus GetQuantizedConvolutionMultipler(TfLiteContext* context, const TfLiteTensor* input,
                                                              const TfLiteTensor* filter, const TfLiteTensor* bias,
                                                              TfLiteTensor* output, double* multiplier);
TFL_CAPI_EXPORT TfLiteStatus GetQuantizedConvolutionMultipler(TfLiteContext* context, const TfLiteTensor* input,
                                                              const TfLiteTensor* filter, TfLiteTensor* output,
                                                              double* multiplier);

/* Multipliers as integers and shifts, one for the tensor and one for each channel, and the clamp of the activation. */
TFL_CAPI_EXPORT TfLiteStatus PopulateConvolutionQuantizationParams(
    TfLiteContext* context, const TfLiteTensor* input, const TfLiteTensor* filter, const TfLiteTensor* bias,
    TfLiteTensor* output, const TfLiteFusedActivation& activation, int32_t* multiplier, int* shift,
    int32_t* output_activation_min, int32_t* output_activation_max, int32_t* per_channel_multiplier,
    int32_t* per_channel_shift);
TFL_CAPI_EXPORT TfLiteStatus PopulateConvolutionQuantizationParams(
    TfLiteContext* context, const TfLiteTensor* input, const TfLiteTensor* filter, const TfLiteTensor* bias,
    TfLiteTensor* output, const TfLiteFusedActivation& activation, int32_t* multiplier, int* shift,
    int32_t* output_activation_min, int32_t* output_activation_max, int32_t* per_channel_multiplier,
    int32_t* per_channel_shift, int num_channels);

}  // namespace tflite

#endif
