/* Two operators that fail where they must: in prepare for a rank, in invoke for a value. C, one of each interface. */
#include <math.h>

#include "tensorflow/lite/c/c_api_opaque.h"
#include "tensorflow/lite/c/common.h"

/* Trace: the sum of a square matrix's diagonal. */
static TfLiteStatus TracePrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueTensorNumDims(input), 2);
  int rows = TfLiteOpaqueTensorDim(input, 0), columns = TfLiteOpaqueTensorDim(input, 1);
  if (rows != columns) {
    TfLiteOpaqueContextReportError(context, "a trace is of a square matrix, found %d x %d", rows, columns);
    return kTfLiteError;
  }
  return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), TfLiteIntArrayCreate(0));
}

static TfLiteStatus TraceInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* x = (const float*)TfLiteOpaqueTensorData(input);
  float* y = (float*)TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  int rows = TfLiteOpaqueTensorDim(input, 0);
  *y = 0.0f;
  for (int i = 0; i < rows; ++i) *y += x[i * rows + i];
  return kTfLiteOk;
}

TfLiteOperator* TraceOperator(void) {
  static TfLiteOperator* op = NULL;
  if (op == NULL) {
    op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Trace", 1, NULL);
    TfLiteOperatorSetPrepare(op, TracePrepare);
    TfLiteOperatorSetInvoke(op, TraceInvoke);
  }
  return op;
}

/* Root: the square root, of nothing below 0. */
static TfLiteStatus RootPrepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = &context->tensors[node->inputs->data[0]];
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]], TfLiteIntArrayCopy(input->dims));
}

static TfLiteStatus RootInvoke(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = &context->tensors[node->inputs->data[0]];
  float* y = context->tensors[node->outputs->data[0]].data.f;
  for (size_t i = 0; i < input->bytes / sizeof(float); ++i) {
    TF_LITE_ENSURE_MSG(context, input->data.f[i] >= 0.0f, "element %d is %g, below 0", (int)i, (double)input->data.f[i]);
    y[i] = sqrtf(input->data.f[i]);
  }
  return kTfLiteOk;
}

TfLiteRegistration* Register_ROOT(void) {
  static TfLiteRegistration r = {.prepare = RootPrepare, .invoke = RootInvoke};
  return &r;
}
