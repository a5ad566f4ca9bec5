// Operators written as public libraries of custom operators write theirs: their includes, helpers and manner of
// registration. And windows on the headers' own helpers, by which Python compares them with formulas.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "flatbuffers/flexbuffers.h"
#include "tensorflow/lite/array.h"
#include "tensorflow/lite/context_util.h"
#include "tensorflow/lite/kernels/internal/common.h"
#include "tensorflow/lite/kernels/internal/quantization_util.h"
#include "tensorflow/lite/kernels/internal/tensor.h"
#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/internal/types.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/kernels/op_macros.h"
#include "tensorflow/lite/kernels/padding.h"
#include "tensorflow/lite/kernels/register.h"
#include "tensorflow/lite/minimal_logging.h"
#include "tensorflow/lite/mutable_op_resolver.h"
#include "tensorflow/lite/portable_type_to_tflitetype.h"
#include "tensorflow/lite/schema/schema_generated.h"
#include "tensorflow/lite/string_util.h"
#include "tensorflow/lite/util.h"

namespace usual {
namespace {

TfLiteRegistration Record(void* (*init)(TfLiteContext*, const char*, size_t), void (*free)(TfLiteContext*, void*),
                          TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*),
                          TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
  TfLiteRegistration r{};
  r.init = init;
  r.free = free;
  r.prepare = prepare;
  r.invoke = invoke;
  return r;
}

}  // namespace

/* --- the largest element of each window, and where it was: options by flexbuffers::Map, windows by padding.h --------- */

namespace pool {

struct OpData {
  TfLitePadding padding;
  int stride_height, stride_width, filter_height, filter_width;
  TfLitePaddingValues around;
};

void* Init(TfLiteContext*, const char* buffer, size_t length) {
  if (buffer == nullptr) return new OpData{}; /* a node without options, which FlatBuffers' own reader does not take */
  const flexbuffers::Map& m = flexbuffers::GetRoot(reinterpret_cast<const uint8_t*>(buffer), length).AsMap();
  const flexbuffers::TypedVector strides = m["strides"].AsTypedVector(), sizes = m["ksize"].AsTypedVector();
  return new OpData{m["padding"].AsString().str() == "SAME" ? kTfLitePaddingSame : kTfLitePaddingValid,
                    strides[1].AsInt32(), strides[2].AsInt32(), sizes[1].AsInt32(), sizes[2].AsInt32(), {}};
}
void Free(TfLiteContext*, void* data) { delete static_cast<OpData*>(data); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  OpData* data = static_cast<OpData*>(node->user_data);
  const TfLiteTensor* input;
  TfLiteTensor *output, *places;
  TF_LITE_ENSURE_EQ(context, tflite::NumInputs(node), 1);
  TF_LITE_ENSURE_EQ(context, tflite::NumOutputs(node), 2);
  TF_LITE_ENSURE_OK(context, tflite::GetInputSafe(context, node, 0, &input));
  TF_LITE_ENSURE_OK(context, tflite::GetOutputSafe(context, node, 0, &output));
  TF_LITE_ENSURE_OK(context, tflite::GetOutputSafe(context, node, 1, &places));
  TF_LITE_ENSURE_EQ(context, tflite::NumDimensions(input), 4);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, tflite::typeToTfLiteType<float>());
  TF_LITE_ENSURE_MSG(context, data->stride_height > 0 && data->stride_width > 0, "strides are above 0");
  int height, width;
  data->around = tflite::ComputePaddingHeightWidth(
      data->stride_height, data->stride_width, 1, 1, tflite::SizeOfDimension(input, 1),
      tflite::SizeOfDimension(input, 2), data->filter_height, data->filter_width, data->padding, &height, &width);
  tflite::IntArrayUniquePtr shape =
      tflite::BuildTfLiteArray({input->dims->data[0], height, width, input->dims->data[3]});
  TF_LITE_ENSURE_OK(context, context->ResizeTensor(context, output, TfLiteIntArrayCopy(shape.get())));
  return context->ResizeTensor(context, places, shape.release());
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const OpData* data = static_cast<const OpData*>(node->user_data);
  const TfLiteTensor* input;
  TfLiteTensor *output, *places;
  TF_LITE_ENSURE_OK(context, tflite::GetInputSafe(context, node, 0, &input));
  TF_LITE_ENSURE_OK(context, tflite::GetOutputSafe(context, node, 0, &output));
  TF_LITE_ENSURE_OK(context, tflite::GetOutputSafe(context, node, 1, &places));
  const tflite::RuntimeShape from = tflite::GetTensorShape(input), to = tflite::GetTensorShape(output);
  const float* x = tflite::GetTensorData<float>(input);
  const int batches = MatchingDim(from, 0, to, 0), channels = MatchingDim(from, 3, to, 3);
  for (int b = 0; b < batches; ++b) {
    for (int i = 0; i < to.Dims(1); ++i) {
      for (int j = 0; j < to.Dims(2); ++j) {
        for (int c = 0; c < channels; ++c) {
          float best = std::numeric_limits<float>::lowest();
          int place = 0;
          for (int u = 0; u < data->filter_height; ++u) {
            for (int v = 0; v < data->filter_width; ++v) {
              const int row = i * data->stride_height - data->around.height + u;
              const int column = j * data->stride_width - data->around.width + v;
              if (row < 0 || row >= from.Dims(1) || column < 0 || column >= from.Dims(2)) continue;
              const float value = x[Offset(from, b, row, column, c)];
              if (value > best) best = value, place = (row * from.Dims(2) + column) * channels + c;
            }
          }
          tflite::GetTensorData<float>(output)[Offset(to, b, i, j, c)] =
              tflite::ActivationFunctionWithMinMax(best, -6.0f, 6.0f);
          tflite::GetTensorData<int32_t>(places)[Offset(to, b, i, j, c)] = place;
        }
      }
    }
  }
  return kTfLiteOk;
}

}  // namespace pool

/* --- an activation on int8, its scales as integers ------------------------------------------------------------------ */

namespace rescale {

struct OpData {
  int32_t multiplier;
  int shift;
  int32_t low, high;
};

void* Init(TfLiteContext*, const char*, size_t) { return new OpData; }
void Free(TfLiteContext*, void* data) { delete static_cast<OpData*>(data); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  OpData* data = static_cast<OpData*>(node->user_data);
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  TF_LITE_ENSURE_TYPES_EQ(context, input->type, kTfLiteInt8);
  tflite::QuantizeMultiplier(static_cast<double>(input->params.scale) / static_cast<double>(output->params.scale),
                             &data->multiplier, &data->shift);
  TF_LITE_ENSURE_STATUS(
      tflite::CalculateActivationRangeQuantized(context, kTfLiteActRelu, output, &data->low, &data->high));
  const tflite::TfLiteIntArrayView sizes(input->dims);
  return context->ResizeTensor(
      context, output, tflite::ConvertVectorToTfLiteIntArray(std::vector<int>(sizes.begin(), sizes.end())));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const OpData* data = static_cast<const OpData*>(node->user_data);
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  const int count = MatchingFlatSize(tflite::GetTensorShape(input), tflite::GetTensorShape(output));
  for (int i = 0; i < count; ++i) {
    const int32_t x = tflite::GetTensorData<int8_t>(input)[i] - input->params.zero_point;
    const int32_t y =
        tflite::MultiplyByQuantizedMultiplier(x, data->multiplier, data->shift) + output->params.zero_point;
    tflite::GetTensorData<int8_t>(output)[i] = static_cast<int8_t>(std::min(std::max(y, data->low), data->high));
  }
  return kTfLiteOk;
}

}  // namespace rescale

/* --- any number of inputs, by VectorOfTensors; a type that is refused in invoke -------------------------------------- */

namespace total {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, tflite::NumInputs(node) >= 1);
  return context->ResizeTensor(context, tflite::GetOutput(context, node, 0),
                               TfLiteIntArrayCopy(tflite::GetInput(context, node, 0)->dims));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  switch (output->type) {
    case kTfLiteFloat32: {
      const tflite::VectorOfTensors<float> inputs(*context, *node->inputs);
      for (tflite::int32 i = 0; i < inputs.shapes()[0]->FlatSize(); ++i) {
        float sum = 0;
        for (size_t k = 0; k < inputs.size(); ++k) sum += inputs.data()[k][i];
        tflite::GetTensorData<float>(output)[i] = sum;
      }
      TFLITE_LOG(tflite::TFLITE_LOG_INFO, "%d inputs", tflite::NumInputs(node));
      return kTfLiteOk;
    }
    default:
      TF_LITE_UNSUPPORTED_TYPE(context, output->type, "Total");
  }
}

}  // namespace total

TfLiteRegistration* RegisterTotal() {
  static TfLiteRegistration r = Record(nullptr, nullptr, total::Prepare, total::Eval);
  return &r;
}
TfLiteRegistration* RegisterPoolWithPlaces() {
  static TfLiteRegistration r = Record(pool::Init, pool::Free, pool::Prepare, pool::Eval);
  return &r;
}
TfLiteRegistration* RegisterRescale() {
  static TfLiteRegistration r = Record(rescale::Init, rescale::Free, rescale::Prepare, rescale::Eval);
  return &r;
}

#ifdef RESOLVERS
void AddAllOfUs(tflite::MutableOpResolver* resolver) {
  resolver->AddCustom("Pool", RegisterPoolWithPlaces(), 1, 3);
  const TfLiteRegistration gone = *RegisterRescale();
  resolver->AddCustom("Rescale", &gone);
}
void AddNothing(tflite::MutableOpResolver* resolver) {
  if (resolver->FindOp("Pool", 1) != nullptr) resolver->AddCustom("Pool", RegisterPoolWithPlaces());
}
void AddBuiltin(tflite::MutableOpResolver* resolver) {
  resolver->AddBuiltin(static_cast<tflite::BuiltinOperator>(0), RegisterRescale());
}
void AddNameless(tflite::MutableOpResolver* resolver) { resolver->AddCustom("", RegisterRescale()); }
#endif

}  // namespace usual

#ifdef RESOLVERS
extern "C" TFL_CAPI_EXPORT void RegisterOne(tflite::MutableOpResolver* resolver) {
  std::string name = "One";
  resolver->AddCustom(name.c_str(), usual::RegisterRescale(), 2);
}
#endif

extern "C" {

int32_t multiplied(int32_t x, double real) {
  int32_t multiplier;
  int shift;
  tflite::QuantizeMultiplier(real, &multiplier, &shift);
  return tflite::MultiplyByQuantizedMultiplier(x, multiplier, shift);
}

}
