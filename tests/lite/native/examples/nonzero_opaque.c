/* The places of elements that are not 0: how many there are is known when the values are. Opaque interface, C. */
#include "tensorflow/lite/c/c_api_opaque.h"

static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, TfLiteOpaqueTensorType(output), kTfLiteInt32);
  TfLiteOpaqueTensorSetAllocationTypeToDynamic(output);
  return kTfLiteOk;
}

static TfLiteStatus Invoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);
  const float* x = (const float*)TfLiteOpaqueTensorData(input);
  size_t count = TfLiteOpaqueTensorByteSize(input) / sizeof(float);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  shape->data[0] = 0;
  for (size_t i = 0; i < count; ++i) shape->data[0] += x[i] != 0.0f;
  TfLiteStatus status = TfLiteOpaqueContextResizeTensor(context, output, shape);
  if (status != kTfLiteOk) return status;
  int32_t* places = (int32_t*)TfLiteOpaqueTensorData(output);
  for (size_t i = 0; i < count; ++i) {
    if (x[i] != 0.0f) *places++ = (int32_t)i;
  }
  return kTfLiteOk;
}

TfLiteOperator* NonZeroOperator(void) {
  static TfLiteOperator* op = NULL;
  if (op == NULL) {
    op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "NonZero", 1, NULL);
    TfLiteOperatorSetPrepare(op, Prepare);
    TfLiteOperatorSetInvoke(op, Invoke);
  }
  return op;
}
