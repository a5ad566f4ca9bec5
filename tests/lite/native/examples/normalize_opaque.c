/* y = x / sum |x|, with |x| in a temporary tensor. Opaque interface, C.

   The tensor is added once, in the first prepare; it has memory in the runs of its own node, after it got a shape. */
#include <math.h>
#include <stdlib.h>

#include "tensorflow/lite/c/c_api_opaque.h"

typedef struct {
  int temporary; /* -1 before there is one */
} OpData;

static void* Init(TfLiteOpaqueContext* context, const char* buffer, size_t length) {
  (void)context, (void)buffer, (void)length;
  OpData* data = (OpData*)malloc(sizeof(OpData));
  if (data != NULL) data->temporary = -1;
  return data;
}

static void Free(TfLiteOpaqueContext* context, void* data) {
  (void)context;
  free(data);
}

static TfLiteIntArray* ShapeOf(const TfLiteOpaqueTensor* tensor) {
  int rank = TfLiteOpaqueTensorNumDims(tensor);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  for (int i = 0; i < rank; ++i) shape->data[i] = TfLiteOpaqueTensorDim(tensor, i);
  return shape;
}

static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  OpData* data = (OpData*)TfLiteOpaqueNodeGetUserData(node);
  if (data->temporary < 0) {
    TfLiteOpaqueTensorBuilder* builder = TfLiteOpaqueTensorBuilderCreate();
    TfLiteOpaqueTensorBuilderSetType(builder, kTfLiteFloat32);
    TfLiteOpaqueTensorBuilderSetAllocationType(builder, kTfLiteArenaRw);
    TfLiteStatus added = TfLiteOpaqueContextAddTensor(context, builder, &data->temporary);
    TfLiteOpaqueTensorBuilderDelete(builder);
    if (added != kTfLiteOk) return added;
  }
  if (TfLiteOpaqueNodeSetTemporaries(node, &data->temporary, 1) != kTfLiteOk) return kTfLiteError;
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0); /* after the tensors stay in place */
  TfLiteOpaqueTensor* temporary = TfLiteOpaqueContextGetOpaqueTensor(context, data->temporary);
  TfLiteStatus status = TfLiteOpaqueContextResizeTensor(context, temporary, ShapeOf(input));
  if (status != kTfLiteOk) return status;
  return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), ShapeOf(input));
}

static TfLiteStatus Invoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  OpData* data = (OpData*)TfLiteOpaqueNodeGetUserData(node);
  TfLiteOpaqueTensor* temporary = TfLiteOpaqueContextGetOpaqueTensor(context, data->temporary);
  TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueTensorType(temporary) == kTfLiteFloat32);
  TF_LITE_OPAQUE_ENSURE(context, TfLiteOpaqueTensorGetAllocationType(temporary) == kTfLiteArenaRw);
  float* sizes = (float*)TfLiteOpaqueTensorData(temporary);
  TF_LITE_OPAQUE_ENSURE(context, sizes != NULL);
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* x = (const float*)TfLiteOpaqueTensorData(input);
  float* y = (float*)TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  size_t count = TfLiteOpaqueTensorByteSize(input) / sizeof(float);
  double total = 0.0;
  for (size_t i = 0; i < count; ++i) sizes[i] = fabsf(x[i]);
  for (size_t i = 0; i < count; ++i) total += (double)sizes[i];
  for (size_t i = 0; i < count; ++i) y[i] = (float)((double)x[i] / total);
  return kTfLiteOk;
}

const TfLiteRegistrationExternal* NormalizeOperator(void) {
  static TfLiteRegistrationExternal* op = NULL;
  if (op == NULL) {
    op = TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "Normalize", 1);
    TfLiteRegistrationExternalSetInit(op, Init);
    TfLiteRegistrationExternalSetFree(op, Free);
    TfLiteRegistrationExternalSetPrepare(op, Prepare);
    TfLiteRegistrationExternalSetInvoke(op, Invoke);
  }
  return op;
}
