// The guide's Atan for the opaque interface, C++: https://www.tensorflow.org/lite/guide/ops_custom, its typos mended.
//
// Mended: names of two accessors, dims read through functions, static_cast with its type, <cmath>, the lambda's head and
// its call, names of the two callbacks, one `;` inside a record, a const that the record does not keep.
#include <cmath>

#include "third_party/tensorflow/lite/c/c_api.h"
#include "third_party/tensorflow/lite/c/c_api_opaque.h"

namespace atan_op {
namespace {
TfLiteStatus AtanPrepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
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

TfLiteStatus AtanEval(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* output = TfLiteOpaqueNodeGetOutput(context, node, 0);

  float* input_data = static_cast<float*>(TfLiteOpaqueTensorData(input));
  float* output_data = static_cast<float*>(TfLiteOpaqueTensorData(output));

  size_t count = 1;
  int num_dims = TfLiteOpaqueTensorNumDims(input);
  for (int i = 0; i < num_dims; ++i) {
    count *= static_cast<size_t>(TfLiteOpaqueTensorDim(input, i));
  }

  for (size_t i = 0; i < count; ++i) {
    output_data[i] = std::atan(input_data[i]);
  }
  return kTfLiteOk;
}
}  // anonymous namespace

const TfLiteRegistrationExternal* AtanOpRegistrationExternal() {
  // Singleton instance, intentionally never destroyed.
  static const TfLiteRegistrationExternal* atan_op = []() {
    auto* r = TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "ATAN", /*version=*/1);
    TfLiteRegistrationExternalSetPrepare(r, AtanPrepare);
    TfLiteRegistrationExternalSetInvoke(r, AtanEval);
    return r;
  }();
  return atan_op;
}

const TfLiteRegistration AtanOpRegistration() {
  static const TfLiteRegistration atan_op{
      .registration_external = const_cast<TfLiteRegistrationExternal*>(AtanOpRegistrationExternal()),
  };
  return atan_op;
}
}  // namespace atan_op
