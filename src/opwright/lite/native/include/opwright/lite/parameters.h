/* What kernels of the official sources hand to their inner loops: windows, padding, clamps, factors; and steps through
   shapes. Every field of a struct is the kernel's to fill in; nothing here reads one. */
#ifndef OPWRIGHT_LITE_PARAMETERS_H_
#define OPWRIGHT_LITE_PARAMETERS_H_

#ifndef __cplusplus
#error "parameters.h is for C++"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "compatibility.h"

namespace tflite {

enum class FusedActivationFunctionType : uint8_t { kNone, kRelu6, kRelu1, kRelu };
enum class PaddingType : uint8_t { kNone, kSame, kValid };

/* Elements before an image; an offset of 1 is one more behind it. */
struct PaddingValues {
  int16_t width, height;
  int16_t width_offset, height_offset;
};
struct Padding3DValues {
  int16_t width, height, depth;
  int16_t width_offset, height_offset, depth_offset;
};

/* real = scale * (quantized - zero_point) */
struct QuantizationParams {
  int32_t zero_point = 0;
  double scale = 0.0;
};
inline bool operator==(const QuantizationParams& a, const QuantizationParams& b) {
  return a.zero_point == b.zero_point && a.scale == b.scale;
}

struct MinMax {
  float min, max;
};

struct ActivationParams {
  FusedActivationFunctionType activation_type;
  int32_t quantized_activation_min, quantized_activation_max;
};

struct PoolParams {
  FusedActivationFunctionType activation;
  PaddingType padding_type;
  PaddingValues padding_values;
  int stride_height, stride_width;
  int filter_height, filter_width;
  int32_t quantized_activation_min, quantized_activation_max;
  float float_activation_min, float_activation_max;
};

/* Of transposed convolutions, too. */
struct ConvParams {
  PaddingType padding_type;
  PaddingValues padding_values;
  int16_t stride_width, stride_height;
  int16_t dilation_width_factor, dilation_height_factor;
  int32_t input_offset, weights_offset, output_offset;
  int32_t output_multiplier;
  int output_shift;
  int32_t quantized_activation_min, quantized_activation_max;
  float float_activation_min, float_activation_max;
};

struct Conv3DParams {
  Padding3DValues padding_values;
  int stride_width, stride_height, stride_depth;
  int dilation_width, dilation_height, dilation_depth;
  float float_activation_min, float_activation_max;
};
typedef Conv3DParams Conv3DTransposeParams;

struct DepthwiseParams {
  PaddingType padding_type;
  PaddingValues padding_values;
  int16_t stride_width, stride_height;
  int16_t dilation_width_factor, dilation_height_factor;
  int16_t depth_multiplier;
  int32_t input_offset, weights_offset, output_offset;
  int32_t output_multiplier;
  int output_shift;
  int32_t quantized_activation_min, quantized_activation_max;
  float float_activation_min, float_activation_max;
  const int32_t* output_multiplier_per_channel;
  const int32_t* output_shift_per_channel;
};

struct FullyConnectedParams {
  int32_t input_offset, weights_offset, output_offset;
  int32_t output_multiplier;
  int output_shift;
  int32_t quantized_activation_min, quantized_activation_max;
  float float_activation_min, float_activation_max;
  bool lhs_cacheable, rhs_cacheable;
};

/* A clamp into a struct that has fields for one, and out of it; int or float says which of its two. */
template <typename P>
void SetActivationParams(float min, float max, P* params) {
  params->float_activation_min = min;
  params->float_activation_max = max;
}
template <typename P>
void SetActivationParams(int32_t min, int32_t max, P* params) {
  params->quantized_activation_min = min;
  params->quantized_activation_max = max;
}
template <typename P>
void GetActivationParams(const P& params, int32_t* min, int32_t* max) {
  *min = params.quantized_activation_min;
  *max = params.quantized_activation_max;
}
template <typename P>
void GetActivationParams(const P& params, float* min, float* max) {
  *min = params.float_activation_min;
  *max = params.float_activation_max;
}

/* The next place of a tensor, the last dimension first; false after the last one. */
inline bool NextIndex(int num_dims, const int* dims, int* current) {
  for (int i = num_dims - 1; i >= 0; --i) {
    if (++current[i] < dims[i]) return true;
    current[i] = 0;
  }
  return false;
}

/* The place in the result of a reduction over these dimensions. */
inline size_t ReducedOutputOffset(int num_dims, const int* dims, const int* index, int num_axis, const int* axis) {
  size_t offset = 0;
  for (int i = 0; i < num_dims; ++i) {
    const bool reduced = axis != nullptr && std::find(axis, axis + num_axis, i) != axis + num_axis;
    if (!reduced) offset = offset * static_cast<size_t>(dims[i]) + static_cast<size_t>(index[i]);
  }
  return offset;
}

}  // namespace tflite

#endif
