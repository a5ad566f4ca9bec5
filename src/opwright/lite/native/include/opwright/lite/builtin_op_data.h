/* What options of builtin operators are made of, as far as custom operators use it. */
#ifndef OPWRIGHT_LITE_BUILTIN_OP_DATA_H_
#define OPWRIGHT_LITE_BUILTIN_OP_DATA_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TfLitePadding { kTfLitePaddingUnknown = 0, kTfLitePaddingSame = 1, kTfLitePaddingValid = 2 } TfLitePadding;

typedef enum TfLiteFusedActivation {
  kTfLiteActNone = 0,
  kTfLiteActRelu = 1,
  kTfLiteActReluN1To1 = 2,
  kTfLiteActRelu6 = 3,
  kTfLiteActTanh = 4,
  kTfLiteActSignBit = 5,
  kTfLiteActSigmoid = 6
} TfLiteFusedActivation;

typedef struct TfLitePaddingValues {
  int width, height;
  int width_offset, height_offset;
} TfLitePaddingValues;

/* Options of pooling, which public custom operators carry as they are: MaxUnpooling2D, MaxPoolingWithArgmax2D. */
typedef struct TfLitePoolParams {
  TfLitePadding padding;
  int stride_width, stride_height;
  int filter_width, filter_height;
  TfLiteFusedActivation activation;
  struct {
    TfLitePaddingValues padding;
  } computed;
} TfLitePoolParams;

/* Options of convolutions, in the same way: Convolution2DTransposeBias. Later headers appended fields. */
typedef struct TfLiteConvParams {
  TfLitePadding padding;
  int stride_width, stride_height;
  TfLiteFusedActivation activation;
  int dilation_width_factor, dilation_height_factor;
  TfLiteType quantized_bias_type;
} TfLiteConvParams;

typedef struct TfLiteConv3DParams {
  TfLitePadding padding;
  int stride_width, stride_height, stride_depth;
  int dilation_width_factor, dilation_height_factor, dilation_depth_factor;
  TfLiteFusedActivation activation;
} TfLiteConv3DParams;
typedef TfLiteConv3DParams TfLiteConv3DTransposeParams;

typedef struct TfLiteDepthwiseConvParams {
  TfLitePadding padding;
  int stride_width, stride_height;
  int depth_multiplier;
  TfLiteFusedActivation activation;
  int dilation_width_factor, dilation_height_factor;
} TfLiteDepthwiseConvParams;

typedef struct TfLiteTransposeConvParams {
  TfLitePadding padding;
  int stride_width, stride_height;
  TfLiteFusedActivation activation;
  TfLiteType quantized_bias_type;
} TfLiteTransposeConvParams;

#ifdef __cplusplus
}
#endif

#endif
