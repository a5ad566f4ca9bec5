// Entry points in C++, with namespaces, overloads and arguments.
#include "tensorflow/lite/c/common.h"

namespace {
TfLiteStatus Fill(TfLiteContext* context, TfLiteNode* node, float value) {
  TfLiteTensor* y = &context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < y->bytes / 4; ++i) y->data.f[i] = value;
  return kTfLiteOk;
}
TfLiteStatus One(TfLiteContext* c, TfLiteNode* n) { return Fill(c, n, 1); }
TfLiteStatus Two(TfLiteContext* c, TfLiteNode* n) { return Fill(c, n, 2); }
}  // namespace

namespace first { namespace ops {
TfLiteRegistration* Register_ONE() {
  static TfLiteRegistration r = {nullptr, nullptr, nullptr, One};
  return &r;
}
TfLiteRegistration* Shared() { return Register_ONE(); }
}}  // namespace first::ops

namespace second {
TfLiteRegistration TwoOpRegistration() { return TfLiteRegistration{nullptr, nullptr, nullptr, Two}; }
TfLiteRegistration* Shared() { return nullptr; }
TfLiteRegistration* Register_WITH(int) { return nullptr; }
}  // namespace second
