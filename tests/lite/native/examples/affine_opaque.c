/* y = alpha * x + beta: state that init reads from the options and free gives back. Opaque interface, C. */
#include <stdlib.h>

#include "opwright/flexbuffer.h"
#include "tensorflow/lite/c/c_api_opaque.h"

typedef struct {
  float alpha, beta;
} State;

static void* AffineInit(TfLiteOpaqueContext* context, const char* buffer, size_t length) {
  State* state = (State*)malloc(sizeof(State));
  if (state == NULL) return TfLiteKernelInitFailed();
  state->alpha = 1.0f; /* what a model that says nothing means */
  state->beta = 0.0f;
  ow_flex_float(buffer, length, "alpha", &state->alpha);
  ow_flex_float(buffer, length, "beta", &state->beta);
  if (state->alpha == 0.0f) {
    TF_LITE_OPAQUE_KERNEL_LOG(context, "Affine: alpha is 0");
    free(state);
    return TfLiteKernelInitFailed();
  }
  return state;
}

static void AffineFree(TfLiteOpaqueContext* context, void* state) {
  (void)context;
  free(state);
}

static TfLiteStatus AffinePrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, TfLiteOpaqueTensorType(input), kTfLiteFloat32);
  int rank = TfLiteOpaqueTensorNumDims(input);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  for (int i = 0; i < rank; ++i) shape->data[i] = TfLiteOpaqueTensorDim(input, i);
  return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), shape);
}

static TfLiteStatus AffineInvoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const State* state = (const State*)TfLiteOpaqueNodeGetUserData(node);
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* x = (const float*)TfLiteOpaqueTensorData(input);
  float* y = (float*)TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  size_t count = TfLiteOpaqueTensorByteSize(input) / sizeof(float);
  for (size_t i = 0; i < count; ++i) y[i] = state->alpha * x[i] + state->beta;
  return kTfLiteOk;
}

TfLiteOperator* AffineOperator(void) {
  static TfLiteOperator* op = NULL;
  if (op == NULL) {
    op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Affine", 1, NULL);
    TfLiteOperatorSetInit(op, AffineInit);
    TfLiteOperatorSetFree(op, AffineFree);
    TfLiteOperatorSetPrepare(op, AffinePrepare);
    TfLiteOperatorSetInvoke(op, AffineInvoke);
  }
  return op;
}
