// The words of each string, one after the other, and how many each had: strings in and out, public fields, C++.
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/string_util.h"

namespace {
TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_TYPES_EQ(context, tflite::GetInput(context, node, 0)->type, kTfLiteString);
  tflite::SetTensorToDynamic(tflite::GetOutput(context, node, 0));
  TfLiteTensor* counts = tflite::GetOutput(context, node, 1);
  return context->ResizeTensor(context, counts, TfLiteIntArrayCopy(tflite::GetInput(context, node, 0)->dims));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* counts = tflite::GetOutput(context, node, 1);
  tflite::DynamicBuffer words;
  const int count = tflite::GetStringCount(input);
  for (int i = 0; i < count; ++i) {
    const tflite::StringRef text = tflite::GetString(input, i);
    counts->data.i32[i] = 0;
    for (size_t start = 0, end; start < text.len; start = end + 1) {
      for (end = start; end < text.len && text.str[end] != ' ';) ++end;
      if (end > start) {
        words.AddString(text.str + start, end - start);
        counts->data.i32[i] += 1;
      }
    }
  }
  return words.WriteToTensorAsVector(tflite::GetOutput(context, node, 0));
}
}  // namespace

TfLiteRegistration* Register_WORDS() {
  static TfLiteRegistration r = {nullptr, nullptr, Prepare, Eval};
  return &r;
}
