// The places of elements that are not 0: how many there are is known when the values are. Public fields, C++.
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/kernel_util.h"

namespace {
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  TF_LITE_ENSURE_TYPES_EQ(context, output->type, kTfLiteInt32);
  tflite::SetTensorToDynamic(output);
  return kTfLiteOk;
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  const int64_t count = tflite::NumElements(input);
  int found = 0;
  for (int64_t i = 0; i < count; ++i) found += input->data.f[i] != 0.0f;
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  shape->data[0] = found;
  TF_LITE_ENSURE_OK(context, context->ResizeTensor(context, output, shape));
  int place = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (input->data.f[i] != 0.0f) output->data.i32[place++] = static_cast<int32_t>(i);
  }
  return kTfLiteOk;
}
}  // namespace

TfLiteRegistration* Register_NONZERO() {
  static TfLiteRegistration r = {nullptr, nullptr, Prepare, Eval};
  return &r;
}
