// y = x / sum |x|, with |x| in a temporary tensor. Public fields, C++; the guide's lines on temporaries are Prepare's.
#include <cmath>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/kernel_util.h"

namespace {
struct OpData {
  int temp_tensor_index;
};

void* Init(TfLiteContext* context, const char*, size_t) {
  auto* op_data = new OpData;
  context->AddTensors(context, 1, &op_data->temp_tensor_index);  // once a node
  return op_data;
}

void Free(TfLiteContext*, void* buffer) { delete reinterpret_cast<OpData*>(buffer); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  auto* op_data = reinterpret_cast<OpData*>(node->user_data);
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = TfLiteIntArrayCreate(1);
  node->temporaries->data[0] = op_data->temp_tensor_index;
  TfLiteTensor* temp_tensor = &context->tensors[op_data->temp_tensor_index];
  temp_tensor->type = kTfLiteFloat32;
  temp_tensor->allocation_type = kTfLiteArenaRw;
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TF_LITE_ENSURE_OK(context, context->ResizeTensor(context, temp_tensor, TfLiteIntArrayCopy(input->dims)));
  return context->ResizeTensor(context, tflite::GetOutput(context, node, 0), TfLiteIntArrayCopy(input->dims));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  TfLiteTensor* sizes;
  TF_LITE_ENSURE_OK(context, tflite::GetTemporarySafe(context, node, 0, &sizes));
  TF_LITE_ENSURE(context, sizes->data.f != nullptr);
  double total = 0.0;
  const int64_t count = tflite::NumElements(input);
  for (int64_t i = 0; i < count; ++i) sizes->data.f[i] = std::fabs(input->data.f[i]);
  for (int64_t i = 0; i < count; ++i) total += sizes->data.f[i];
  for (int64_t i = 0; i < count; ++i) output->data.f[i] = static_cast<float>(input->data.f[i] / total);
  return kTfLiteOk;
}
}  // namespace

extern "C" TfLiteRegistration* Register_NORMALIZE() {
  static TfLiteRegistration r = {Init, Free, Prepare, Eval};
  return &r;
}
