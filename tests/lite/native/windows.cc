// Operators with windows, tables and strings, as public libraries write theirs: what they include, the structs that they
// fill in, the records that they give. Options of the first three are structs of builtin operators, byte by byte.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "flatbuffers/flexbuffers.h"
#include "tensorflow/lite/core/c/builtin_op_data.h"
#include "tensorflow/lite/core/c/common.h"
#include "tensorflow/lite/kernels/internal/common.h"
#include "tensorflow/lite/kernels/internal/portable_tensor.h"
#include "tensorflow/lite/kernels/internal/runtime_shape.h"
#include "tensorflow/lite/kernels/internal/tensor.h"
#include "tensorflow/lite/kernels/internal/types.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/kernels/padding.h"
#include "tflite/c/c_api_types.h"
#include "tflite/kernels/internal/reference/integer_ops/lut.h"
#include "tflite/schema/schema_generated.h"

namespace windows {

template <typename Options>
const Options* OptionsOf(const TfLiteNode* node) {
  return reinterpret_cast<const Options*>(node->custom_initial_data);
}

TfLiteStatus Resize(TfLiteContext* context, TfLiteTensor* tensor, const std::vector<int>& sizes) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(static_cast<int>(sizes.size()));
  std::copy(sizes.begin(), sizes.end(), shape->data);
  return context->ResizeTensor(context, tensor, shape);
}

/* --- the largest of each window, and its number in the window ------------------------------------------------------- */

namespace pool {

void* Init(TfLiteContext*, const char*, size_t) { return new TfLitePaddingValues(); }
void Free(TfLiteContext*, void* data) { delete reinterpret_cast<TfLitePaddingValues*>(data); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, ::tflite::NumInputs(node), 1);
  TF_LITE_ENSURE_EQ(context, ::tflite::NumOutputs(node), 2);
  const TfLiteTensor* x = ::tflite::GetInput(context, node, 0);
  TF_LITE_ENSURE_EQ(context, ::tflite::NumDimensions(x), 4);
  const TfLitePoolParams* options = OptionsOf<TfLitePoolParams>(node);
  TF_LITE_ENSURE(context, options->padding != kTfLitePaddingUnknown);
  auto* around = reinterpret_cast<TfLitePaddingValues*>(node->user_data);
  int height = 0, width = 0;
  *around = ::tflite::ComputePaddingHeightWidth(options->stride_height, options->stride_width, 1, 1, x->dims->data[1],
                                                x->dims->data[2], options->filter_height, options->filter_width,
                                                options->padding, &height, &width);
  TF_LITE_ENSURE_STATUS(::tflite::ValidatePaddingValuesForInt16(*around));
  for (int i = 0; i < 2; ++i) {
    TF_LITE_ENSURE_OK(context, Resize(context, ::tflite::GetOutput(context, node, i),
                                      {x->dims->data[0], height, width, x->dims->data[3]}));
  }
  return kTfLiteOk;
}

void Pool(const ::tflite::PoolParams& p, const ::tflite::RuntimeShape& in, const float* x,
          const ::tflite::RuntimeShape& out, float* y, float* places) {
  for (int b = 0; b < MatchingDim(in, 0, out, 0); ++b) {
    for (int i = 0; i < out.Dims(1); ++i) {
      for (int j = 0; j < out.Dims(2); ++j) {
        for (int c = 0; c < MatchingDim(in, 3, out, 3); ++c) {
          const int top = i * p.stride_height - p.padding_values.height;
          const int left = j * p.stride_width - p.padding_values.width;
          float best = std::numeric_limits<float>::lowest();
          int place = 0;
          for (int r = std::max(0, -top); r < std::min(p.filter_height, in.Dims(1) - top); ++r) {
            for (int q = std::max(0, -left); q < std::min(p.filter_width, in.Dims(2) - left); ++q) {
              const float value = x[Offset(in, b, top + r, left + q, c)];
              if (value > best) best = value, place = r * p.filter_width + q;
            }
          }
          y[Offset(out, b, i, j, c)] =
              ::tflite::ActivationFunctionWithMinMax(best, p.float_activation_min, p.float_activation_max);
          places[Offset(out, b, i, j, c)] = static_cast<float>(place);
        }
      }
    }
  }
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLitePoolParams* options = OptionsOf<TfLitePoolParams>(node);
  const auto* around = reinterpret_cast<const TfLitePaddingValues*>(node->user_data);
  const TfLiteTensor* x = ::tflite::GetInput(context, node, 0);
  TfLiteTensor* y = ::tflite::GetOutput(context, node, 0);
  TfLiteTensor* places = ::tflite::GetOutput(context, node, 1);
  float least, most;
  ::tflite::CalculateActivationRange(options->activation, &least, &most);
  ::tflite::PoolParams p;
  p.activation = ::tflite::FusedActivationFunctionType::kNone;
  p.padding_type = ::tflite::PaddingType::kValid;
  p.stride_height = options->stride_height;
  p.stride_width = options->stride_width;
  p.filter_height = options->filter_height;
  p.filter_width = options->filter_width;
  p.padding_values.height = static_cast<int16_t>(around->height);
  p.padding_values.width = static_cast<int16_t>(around->width);
  ::tflite::SetActivationParams(least, most, &p);
  Pool(p, ::tflite::GetTensorShape(x), ::tflite::GetTensorData<float>(x), ::tflite::GetTensorShape(y),
       ::tflite::GetTensorData<float>(y), ::tflite::GetTensorData<float>(places));
  return kTfLiteOk;
}

}  // namespace pool

TfLiteRegistration* RegisterPoolWithPlaces() {
  static TfLiteRegistration r = {pool::Init, pool::Free, pool::Prepare, pool::Eval};
  return &r;
}

/* --- a transposed convolution and a bias ---------------------------------------------------------------------------- */

namespace transposed {

int Missing(const TfLiteTransposeConvParams* options, int filter, int size, int stride) {
  return options->padding == kTfLitePaddingSame ? std::max(0, filter - (size - 1) % stride - 1) : 0;
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = ::tflite::GetInput(context, node, 0);
  const TfLiteTensor* weights = ::tflite::GetInput(context, node, 1); /* [out, height, width, in] */
  const TfLiteTensor* bias = ::tflite::GetInput(context, node, 2);
  TF_LITE_ENSURE_EQ(context, ::tflite::SizeOfDimension(weights, 0), ::tflite::SizeOfDimension(bias, 0));
  const auto* options = OptionsOf<TfLiteTransposeConvParams>(node);
  std::vector<int> sizes = {::tflite::SizeOfDimension(x, 0), 0, 0, ::tflite::SizeOfDimension(weights, 0)};
  for (int i = 1; i < 3; ++i) {
    const int stride = i == 1 ? options->stride_height : options->stride_width;
    const int filter = ::tflite::SizeOfDimension(weights, i), size = ::tflite::SizeOfDimension(x, i);
    sizes[static_cast<size_t>(i)] = stride * (size - 1) + filter - Missing(options, filter, size, stride);
  }
  return Resize(context, ::tflite::GetOutput(context, node, 0), sizes);
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = ::tflite::GetInput(context, node, 0);
  const TfLiteTensor* weights = ::tflite::GetInput(context, node, 1);
  const float* bias = ::tflite::GetTensorData<float>(::tflite::GetInput(context, node, 2));
  TfLiteTensor* y = ::tflite::GetOutput(context, node, 0);
  const auto* options = OptionsOf<TfLiteTransposeConvParams>(node);
  ::tflite::ConvParams p;
  p.padding_type = ::tflite::PaddingType::kSame;
  p.stride_height = static_cast<int16_t>(options->stride_height);
  p.stride_width = static_cast<int16_t>(options->stride_width);
  const ::tflite::RuntimeShape in = ::tflite::GetTensorShape(x), of = ::tflite::GetTensorShape(weights),
                               out = ::tflite::GetTensorShape(y);
  p.padding_values.height = static_cast<int16_t>(Missing(options, of.Dims(1), in.Dims(1), p.stride_height) / 2);
  p.padding_values.width = static_cast<int16_t>(Missing(options, of.Dims(2), in.Dims(2), p.stride_width) / 2);
  float* to = ::tflite::GetTensorData<float>(y);
  for (int i = 0; i < out.FlatSize(); ++i) to[i] = bias[i % out.Dims(3)];
  int at[4] = {0, 0, 0, 0};
  do {
    const float value = ::tflite::GetTensorData<float>(x)[Offset(in, at[0], at[1], at[2], at[3])];
    for (int r = 0; r < of.Dims(1); ++r) {
      for (int q = 0; q < of.Dims(2); ++q) {
        const int i = at[1] * p.stride_height - p.padding_values.height + r;
        const int j = at[2] * p.stride_width - p.padding_values.width + q;
        if (i < 0 || i >= out.Dims(1) || j < 0 || j >= out.Dims(2)) continue;
        for (int c = 0; c < of.Dims(0); ++c) {
          to[Offset(out, at[0], i, j, c)] +=
              value * ::tflite::GetTensorData<float>(weights)[Offset(of, c, r, q, at[3])];
        }
      }
    }
  } while (::tflite::NextIndex(4, in.DimsData(), at));
  return kTfLiteOk;
}

}  // namespace transposed

TfLiteRegistration* RegisterTransposedWithBias() {
  static TfLiteRegistration r = {
      /*.init=*/nullptr,
      /*.free=*/nullptr,
      /*.prepare=*/transposed::Prepare,
      /*.invoke=*/transposed::Eval,
      /*.profiling_string=*/nullptr,
      /*.builtin_code=*/tflite::BuiltinOperator_CUSTOM,
      /*.custom_name=*/"TransposedWithBias",
      /*.version=*/1,
  };
  return &r;
}

}  // namespace windows

namespace tflite {
namespace ops {
namespace custom {

/* --- means of windows in three dimensions --------------------------------------------------------------------------- */

namespace means {

struct Params {
  TfLitePadding padding;
  Padding3DValues around;
  int stride, filter;
  int32_t quantized_activation_min, quantized_activation_max;
  float float_activation_min, float_activation_max;
};

void* Init(TfLiteContext*, const char* buffer, size_t length) {
  const flexbuffers::Map& m = flexbuffers::GetRoot(reinterpret_cast<const uint8_t*>(buffer), length).AsMap();
  Params* p = new Params();
  p->padding = m["padding"].AsString().str() == "SAME" ? kTfLitePaddingSame : kTfLitePaddingValid;
  const auto sizes = m["ksize"].AsTypedVector();
  TFLITE_CHECK_EQ(static_cast<int>(sizes.size()), 5);
  p->filter = sizes[1].AsInt32();
  p->stride = m["strides"].AsTypedVector()[1].AsInt32();
  return p;
}
void Free(TfLiteContext*, void* data) { delete reinterpret_cast<Params*>(data); }

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  Params* p = reinterpret_cast<Params*>(node->user_data);
  const TfLiteTensor* x;
  TF_LITE_ENSURE_OK(context, GetInputSafe(context, node, 0, &x));
  TfLiteTensor* y;
  TF_LITE_ENSURE_OK(context, GetOutputSafe(context, node, 0, &y));
  const int* in = x->dims->data;
  int height, width, depth;
  p->around = ComputePadding3DValues(p->stride, p->stride, p->stride, 1, 1, 1, in[2], in[3], in[1], p->filter,
                                     p->filter, p->filter, p->padding, &height, &width, &depth);
  if (x->type == kTfLiteInt8) {
    TF_LITE_ENSURE_NEAR(context, x->params.scale, y->params.scale, 1.0e-6);
    int32_t least, most;
    TF_LITE_ENSURE_OK(context, CalculateActivationRangeQuantized(context, kTfLiteActNone, y, &least, &most));
    SetActivationParams(least, most, p);
  } else {
    float least, most;
    CalculateActivationRange(kTfLiteActRelu, &least, &most);
    SetActivationParams(least, most, p);
  }
  return windows::Resize(context, y, {in[0], depth, height, width, in[4]});
}

template <typename T, typename Sum>
void Means(const Params& p, const RuntimeShape& in, const T* x, const RuntimeShape& out, T* y) {
  Sum least, most;
  GetActivationParams(p, &least, &most);
  const int around[3] = {p.around.depth, p.around.height, p.around.width};
  int at[5] = {0, 0, 0, 0, 0};
  do {
    Sum sum = 0;
    int count = 0;
    for (int i = 0; i < p.filter * p.filter * p.filter; ++i) {
      const int step[3] = {i / (p.filter * p.filter), i / p.filter % p.filter, i % p.filter};
      int from[3];
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        from[d] = at[d + 1] * p.stride - around[d] + step[d];
        inside = inside && from[d] >= 0 && from[d] < in.Dims(d + 1);
      }
      if (!inside) continue;
      sum += x[Offset(in, at[0], from[0], from[1], from[2], at[4])];
      ++count;
    }
    const double mean = static_cast<double>(sum) / count;
    const Sum rounded = std::numeric_limits<T>::is_integer ? static_cast<Sum>(std::round(mean)) : static_cast<Sum>(mean);
    y[Offset(out, at[0], at[1], at[2], at[3], at[4])] = static_cast<T>(std::min(std::max(rounded, least), most));
  } while (NextIndex(5, out.DimsData(), at));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const Params& p = *reinterpret_cast<const Params*>(node->user_data);
  const TfLiteTensor* x = GetInput(context, node, 0);
  TfLiteTensor* y = GetOutput(context, node, 0);
  const RuntimeShape in = GetTensorShape(x), out = GetTensorShape(y);
  switch (x->type) {
    case kTfLiteFloat32:
      Means<float, float>(p, in, GetTensorData<float>(x), out, GetTensorData<float>(y));
      return kTfLiteOk;
    case kTfLiteInt8:
      Means<int8_t, int32_t>(p, in, GetTensorData<int8_t>(x), out, GetTensorData<int8_t>(y));
      return kTfLiteOk;
    default:
      TF_LITE_UNSUPPORTED_TYPE(context, x->type, "Means3D");
  }
}

}  // namespace means

TfLiteRegistration* Register_MEANS_3D() {
  static TfLiteRegistration r = {means::Init, means::Free, means::Prepare, means::Eval};
  return &r;
}

/* --- a table of a function's values --------------------------------------------------------------------------------- */

namespace table {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = GetInput(context, node, 0);
  const TfLiteTensor* lut = GetInput(context, node, 1);
  TF_LITE_ENSURE_TYPES_EQ(context, x->type, lut->type);
  TF_LITE_ENSURE_EQ(context, NumElements(lut), x->type == kTfLiteInt8 ? LUTSize<int8_t>() : LUTSize<int16_t>());
  return context->ResizeTensor(context, GetOutput(context, node, 0), TfLiteIntArrayCopy(x->dims));
}

template <typename T>
void Look(const TfLiteTensor* x, const TfLiteTensor* lut, TfLiteTensor* y) {
  reference_integer_ops::LookupTable(GetTensorData<T>(x), MatchingFlatSize(GetTensorShape(x), GetTensorShape(y)),
                                     GetTensorData<T>(lut), GetTensorData<T>(y));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = GetInput(context, node, 0);
  const TfLiteTensor* lut = GetInput(context, node, 1);
  TfLiteTensor* y = GetOutput(context, node, 0);
  if (x->type == kTfLiteInt8) Look<int8_t>(x, lut, y);
  if (x->type == kTfLiteInt16) Look<int16_t>(x, lut, y);
  return kTfLiteOk;
}

}  // namespace table

TfLiteRegistration* Register_LOOKED_UP() {
  static TfLiteRegistration r = {nullptr, nullptr, table::Prepare, table::Eval};
  return &r;
}

/* --- elements turned about their dimension, of any type ------------------------------------------------------------- */

namespace turned {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = GetInput(context, node, 0);
  return context->ResizeTensor(context, GetOutput(context, node, 0), TfLiteIntArrayCopy(x->dims));
}

template <typename T>
void Turn(int by, const TfLiteTensor* x, TfLiteTensor* y) {
  const int size = SizeOfDimension(x, NumDimensions(x) - 1), rows = GetTensorShape(x).FlatSize() / size;
  SequentialTensorWriter<T> writer(x, y);
  for (int i = 0; i < rows; ++i) {
    writer.WriteN(i * size + size - by, by);
    for (int j = 0; j < size - by; ++j) writer.Write(i * size + j);
  }
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = GetInput(context, node, 0);
  TfLiteTensor* y = GetOutput(context, node, 0);
  const TfLiteTensor* by = GetInput(context, node, 1);
  const std::vector<int32_t> shift(GetTensorData<int32_t>(by), GetTensorData<int32_t>(by) + 1);
  if (GetTensorShape(shift).DimensionsCount() != 1) return kTfLiteError;
  switch (x->type) {
    case kTfLiteFloat32:
      Turn<float>(shift[0], x, y);
      return kTfLiteOk;
    case kTfLiteBool:
      Turn<bool>(shift[0], x, y);
      return kTfLiteOk;
    case kTfLiteString:
      Turn<string>(shift[0], x, y);
      return kTfLiteOk;
    default:
      TF_LITE_UNSUPPORTED_TYPE(context, x->type, "Turned");
  }
}

}  // namespace turned

TfLiteRegistration* Register_TURNED() {
  static TfLiteRegistration r = {nullptr, nullptr, turned::Prepare, turned::Eval};
  return &r;
}

}  // namespace custom
}  // namespace ops
}  // namespace tflite

extern "C" {

static float Tanh(float x) { return std::tanh(x); }
static float Power(float x, const void* exponent) { return std::pow(x, *static_cast<const float*>(exponent)); }

void tanh_table_int8(float scale, int zero, float out_scale, int out_zero, int8_t* lut) {
  tflite::LUTPopulate<int8_t>(scale, zero, out_scale, out_zero, Tanh, lut);
}
void tanh_table_int16(float scale, int zero, float out_scale, int out_zero, int16_t* lut) {
  tflite::LUTPopulate<int16_t>(scale, zero, out_scale, out_zero, Tanh, lut);
}
void power_table_uint8(float scale, int zero, float out_scale, int out_zero, float exponent, uint8_t* lut) {
  tflite::LUTPopulate<uint8_t>(scale, zero, out_scale, out_zero, Power, &exponent, lut);
}

/* Numbers that anybody can look up in the schema and in the headers, by the names of this side. */
void numbers(int* out) {
  out[0] = tflite::BuiltinOperator_ADD;
  out[1] = tflite::BuiltinOperator_CUSTOM;
  out[2] = tflite::BuiltinOperator_TRANSPOSE_CONV;
  out[3] = tflite::BuiltinOperator_MIN;
  out[4] = static_cast<int>(sizeof(tflite::Padding3DValues));
  out[5] = static_cast<int>(sizeof(TfLiteTransposeConvParams));
}

}
