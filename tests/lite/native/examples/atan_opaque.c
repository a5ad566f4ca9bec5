/* The guide's Atan for the opaque interface, C: https://www.tensorflow.org/lite/guide/ops_custom, its typos mended.

   Mended: names of two accessors, dims read through functions, casts of C, <math.h>, names of the two callbacks; a static
   in C begins with a constant, so the first call fills it. */
#include <math.h>

#include "third_party/tensorflow/lite/c/c_api.h"
#include "third_party/tensorflow/lite/c/c_api_opaque.h"

static TfLiteStatus AtanPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfInputs(node), 1);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfOutputs(node), 1);

  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);

  int num_dims = TfLiteOpaqueTensorNumDims(input);

  TfLiteIntArray* output_size = TfLiteIntArrayCreate(num_dims);
  for (int i = 0; i < num_dims; ++i) {
    output_size->data[i] = TfLiteOpaqueTensorDim(input, i);
  }

  return TfLiteOpaqueContextResizeTensor(context, output, output_size);
}

static TfLiteStatus AtanEval(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);

  float* input_data = (float*)TfLiteOpaqueTensorData(input);
  float* output_data = (float*)TfLiteOpaqueTensorData(output);

  size_t count = 1;
  int num_dims = TfLiteOpaqueTensorNumDims(input);
  for (int i = 0; i < num_dims; ++i) {
    count *= (size_t)TfLiteOpaqueTensorDim(input, i);
  }

  for (size_t i = 0; i < count; ++i) {
    output_data[i] = atanf(input_data[i]);
  }
  return kTfLiteOk;
}

static const TfLiteRegistrationExternal* AtanOpCreate(void) {
  TfLiteRegistrationExternal* r = TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "ATAN", /*version=*/1);
  TfLiteRegistrationExternalSetPrepare(r, AtanPrepare);
  TfLiteRegistrationExternalSetInvoke(r, AtanEval);
  return r;
}

const TfLiteRegistrationExternal* AtanOpRegistrationExternal(void) {
  /* Singleton instance, intentionally never destroyed. */
  static const TfLiteRegistrationExternal* atan_op = NULL;
  if (atan_op == NULL) atan_op = AtanOpCreate();
  return atan_op;
}

TfLiteRegistration AtanOpRegistration(void) {
  TfLiteRegistration atan_op = {
      .registration_external = (TfLiteRegistrationExternal*)AtanOpRegistrationExternal(),
  };
  return atan_op;
}
