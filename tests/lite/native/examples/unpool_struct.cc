// MaxUnpooling2D in the style of the official sources: headers, shapes and checks as those include and use them, options
// that are a struct's bytes. y has x's elements at the places that `indices` gives, and zeros elsewhere.
#include <cstring>

#include "tensorflow/lite/core/c/builtin_op_data.h"
#include "tensorflow/lite/core/c/common.h"
#include "tensorflow/lite/kernels/custom_ops_register.h"
#include "tensorflow/lite/kernels/internal/compatibility.h"
#include "tensorflow/lite/kernels/internal/runtime_shape.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/internal/types.h"
#include "tensorflow/lite/kernels/kernel_util.h"

namespace tflite {
namespace ops {
namespace custom {
namespace unpool {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, node->custom_initial_data_size, static_cast<int>(sizeof(TfLitePoolParams)));
  const auto* params = reinterpret_cast<const TfLitePoolParams*>(node->custom_initial_data);
  TF_LITE_ENSURE(context, params->padding == kTfLitePaddingSame);
  const TfLiteTensor* input = GetInput(context, node, 0);
  const TfLiteTensor* indices = GetInput(context, node, 1);
  TF_LITE_ENSURE_EQ(context, NumDimensions(input), 4);
  TF_LITE_ENSURE_EQ(context, input->type, kTfLiteFloat32);
  TF_LITE_ENSURE_TYPES_EQ(context, indices->type, kTfLiteInt32);
  TF_LITE_ENSURE_MSG(context, HaveSameShapes(input, indices), "Input and indices must have the same shape.");
  TfLiteIntArray* size = TfLiteIntArrayCopy(input->dims);
  size->data[1] *= params->stride_height;
  size->data[2] *= params->stride_width;
  return context->ResizeTensor(context, GetOutput(context, node, 0), size);
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = GetInput(context, node, 0);
  const int32_t* indices = GetTensorData<int32_t>(GetInput(context, node, 1));
  TfLiteTensor* output = GetOutput(context, node, 0);
  const RuntimeShape in_shape = GetTensorShape(input), out_shape = GetTensorShape(output);
  TFLITE_CHECK_EQ(in_shape.DimensionsCount(), 4);
  const int batches = MatchingDim(in_shape, 0, out_shape, 0);
  const int depth = MatchingDim(in_shape, 3, out_shape, 3);
  const int stride = out_shape.FlatSize() / batches;
  const float* x = GetTensorData<float>(input);
  float* y = GetTensorData<float>(output);
  std::memset(y, 0, out_shape.FlatSize() * sizeof(float));
  for (int b = 0; b < batches; ++b) {
    for (int i = 0; i < in_shape.Dims(1); ++i) {
      for (int j = 0; j < in_shape.Dims(2); ++j) {
        for (int c = 0; c < depth; ++c) {
          const int at = Offset(in_shape, b, i, j, c);
          TF_LITE_ENSURE(context, indices[at] >= 0 && indices[at] < stride);
          y[b * stride + indices[at]] = x[at];
        }
      }
    }
  }
  return kTfLiteOk;
}

}  // namespace unpool

TfLiteRegistration* Register_UNPOOL() {
  static TfLiteRegistration r = {nullptr, nullptr, unpool::Prepare, unpool::Eval};
  return &r;
}

}  // namespace custom
}  // namespace ops
}  // namespace tflite
