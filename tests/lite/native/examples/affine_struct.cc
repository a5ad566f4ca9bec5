// y = alpha * x + beta: state that Init reads from the options and Free gives back. Public fields, C++, in the guide's
// namespaces.
#include "opwright/flexbuffer.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/kernel_util.h"

namespace my_custom_op {
namespace {
struct OpData {
  float alpha = 1.0f;
  float beta = 0.0f;
};

void* Init(TfLiteContext*, const char* buffer, size_t length) {
  auto* data = new OpData;
  ow_flex_float(buffer, length, "alpha", &data->alpha);
  ow_flex_float(buffer, length, "beta", &data->beta);
  return data;
}

void Free(TfLiteContext*, void* buffer) { delete reinterpret_cast<OpData*>(buffer); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input;
  TF_LITE_ENSURE_OK(context, tflite::GetInputSafe(context, node, 0, &input));
  TfLiteTensor* output;
  TF_LITE_ENSURE_OK(context, tflite::GetOutputSafe(context, node, 0, &output));
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, kTfLiteFloat32);
  return context->ResizeTensor(context, output, TfLiteIntArrayCopy(input->dims));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const auto* data = reinterpret_cast<const OpData*>(node->user_data);
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  const float* x = tflite::GetTensorData<float>(input);
  float* y = tflite::GetTensorData<float>(tflite::GetOutput(context, node, 0));
  const int count = tflite::GetTensorShape(input).FlatSize();
  for (int i = 0; i < count; ++i) y[i] = data->alpha * x[i] + data->beta;
  return kTfLiteOk;
}
}  // namespace
}  // namespace my_custom_op

namespace tflite {
namespace ops {
namespace custom {
TfLiteRegistration* Register_MY_CUSTOM_OP() {
  static TfLiteRegistration r = {my_custom_op::Init, my_custom_op::Free, my_custom_op::Prepare, my_custom_op::Eval};
  return &r;
}
}  // namespace custom
}  // namespace ops
}  // namespace tflite
