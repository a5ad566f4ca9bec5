/* The guide's Sin for the interface with public fields, from C: fields in place of the C++ helpers. */
#include <math.h>

#include "tensorflow/lite/c/common.h"

static TfLiteStatus SinPrepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, node->inputs->size, 1);
  TF_LITE_ENSURE_EQ(context, node->outputs->size, 1);
  const TfLiteTensor* input = &context->tensors[node->inputs->data[0]];
  TfLiteTensor* output = &context->tensors[node->outputs->data[0]];
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, kTfLiteFloat32);
  return context->ResizeTensor(context, output, TfLiteIntArrayCopy(input->dims));
}

static TfLiteStatus SinEval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = &context->tensors[node->inputs->data[0]];
  TfLiteTensor* output = &context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < input->bytes / sizeof(float); ++i) {
    output->data.f[i] = sinf(input->data.f[i]);
  }
  return kTfLiteOk;
}

TfLiteRegistration* Register_SIN(void) {
  static TfLiteRegistration r = {.prepare = SinPrepare, .invoke = SinEval};
  return &r;
}
