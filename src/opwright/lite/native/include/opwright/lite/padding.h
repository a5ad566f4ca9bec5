/* C++ helpers of operators with windows: sizes of outputs, and how much stands around an input.

   A stride of 0 or less gives sizes of 0: options come from the model. */
#ifndef OPWRIGHT_LITE_PADDING_H_
#define OPWRIGHT_LITE_PADDING_H_

#ifndef __cplusplus
#error "padding.h is for C++"
#endif

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "builtin_op_data.h"
#include "common.h"
#include "parameters.h"

namespace tflite {

/* Windows of so many elements, a step apart, that an image has room for. */
inline int ComputeOutSize(TfLitePadding padding, int image_size, int filter_size, int stride, int dilation_rate = 1) {
  const int reach = (filter_size - 1) * dilation_rate + 1;
  if (stride <= 0 || (padding != kTfLitePaddingSame && padding != kTfLitePaddingValid)) return 0;
  return (image_size + stride - (padding == kTfLitePaddingSame ? 1 : reach)) / stride;
}

/* What stands before the image; offset: 1 where one more stands behind it. */
inline int ComputePaddingWithOffset(int stride, int dilation_rate, int in_size, int filter_size, int out_size,
                                    int* offset) {
  const int reach = (filter_size - 1) * dilation_rate + 1;
  const int missing = (out_size - 1) * stride + reach - in_size;
  const int total = missing > 0 ? missing : 0;
  *offset = total % 2;
  return total / 2;
}
inline int ComputePadding(int stride, int dilation_rate, int in_size, int filter_size, int out_size) {
  int offset;
  return ComputePaddingWithOffset(stride, dilation_rate, in_size, filter_size, out_size, &offset);
}

/* Both for an image: the padding, and the size of the output. */
inline TfLitePaddingValues ComputePaddingHeightWidth(int stride_height, int stride_width, int dilation_rate_height,
                                                     int dilation_rate_width, int in_height, int in_width,
                                                     int filter_height, int filter_width, TfLitePadding padding,
                                                     int* out_height, int* out_width) {
  TfLitePaddingValues values;
  *out_height = ComputeOutSize(padding, in_height, filter_height, stride_height, dilation_rate_height);
  *out_width = ComputeOutSize(padding, in_width, filter_width, stride_width, dilation_rate_width);
  values.height = ComputePaddingWithOffset(stride_height, dilation_rate_height, in_height, filter_height, *out_height,
                                           &values.height_offset);
  values.width = ComputePaddingWithOffset(stride_width, dilation_rate_width, in_width, filter_width, *out_width,
                                          &values.width_offset);
  return values;
}

/* The same in three dimensions. */
inline Padding3DValues ComputePadding3DValues(int stride_height, int stride_width, int stride_depth,
                                              int dilation_rate_height, int dilation_rate_width,
                                              int dilation_rate_depth, int in_height, int in_width, int in_depth,
                                              int filter_height, int filter_width, int filter_depth,
                                              TfLitePadding padding, int* out_height, int* out_width, int* out_depth) {
  const TfLitePaddingValues plane =
      ComputePaddingHeightWidth(stride_height, stride_width, dilation_rate_height, dilation_rate_width, in_height,
                                in_width, filter_height, filter_width, padding, out_height, out_width);
  int offset;
  *out_depth = ComputeOutSize(padding, in_depth, filter_depth, stride_depth, dilation_rate_depth);
  const int depth =
      ComputePaddingWithOffset(stride_depth, dilation_rate_depth, in_depth, filter_depth, *out_depth, &offset);
  return Padding3DValues{static_cast<int16_t>(plane.width), static_cast<int16_t>(plane.height),
                         static_cast<int16_t>(depth), static_cast<int16_t>(plane.width_offset),
                         static_cast<int16_t>(plane.height_offset), static_cast<int16_t>(offset)};
}

/* Whether PaddingValues, which has 16 bits for each, holds them. */
inline TfLiteStatus ValidatePaddingValuesForInt16(const TfLitePaddingValues& values) {
  for (int value : {values.width, values.height, values.width_offset, values.height_offset}) {
    if (value < std::numeric_limits<int16_t>::min() || value > std::numeric_limits<int16_t>::max()) return kTfLiteError;
  }
  return kTfLiteOk;
}

}  // namespace tflite

#endif
