/* The C++ helpers of kernel_util.h that do arithmetic of quantised operators, under their mangled names. */
#include <math.h>
#include <string.h>

#include "opwright/lite/builtin_op_data.h"
#include "opwright/lite/helpers.h"
#include "provider.h"

#define DEFINE(Result, name, parameters) \
  OW_EXPORT Result name parameters;      \
  Result name parameters

typedef TfLiteContext Context;
typedef TfLiteTensor Tensor;

#define ACTIVATION_RANGE                                                                           \
  _ZN6tflite33CalculateActivationRangeQuantizedEP13TfLiteContext21TfLiteFusedActivationP12TfLiteTensorPiS5_

DEFINE(TfLiteStatus, ACTIVATION_RANGE,
       (Context * c, TfLiteFusedActivation activation, Tensor* output, int* low, int* high)) {
  OW_REQUIRE(c != NULL && output != NULL && low != NULL && high != NULL, kTfLiteError);
  switch ((int)output->type) {
    case kTfLiteUInt8:
      *low = 0, *high = UINT8_MAX;
      break;
    case kTfLiteInt8:
      *low = INT8_MIN, *high = INT8_MAX;
      break;
    case kTfLiteInt16:
      *low = INT16_MIN, *high = INT16_MAX;
      break;
    default:
      c->ReportError(c, "an output of %s has no quantised activation range", TfLiteTypeGetName(output->type));
      return kTfLiteError;
  }
  double floor_at, ceiling_at;
  bool from_above = true;
  switch ((int)activation) {
    case kTfLiteActRelu:
      floor_at = 0, ceiling_at = 0, from_above = false;
      break;
    case kTfLiteActReluN1To1:
      floor_at = -1, ceiling_at = 1;
      break;
    case kTfLiteActRelu6:
      floor_at = 0, ceiling_at = 6;
      break;
    default: /* no clamp: tanh and its like are no clamps either */
      return kTfLiteOk;
  }
  const float scale = output->params.scale;
  TF_LITE_ENSURE_MSG(c, scale > 0, "the output of an activation has a scale above 0");
  double q_floor = (double)output->params.zero_point + round((double)((float)floor_at / scale));
  double q_ceiling = (double)output->params.zero_point + round((double)((float)ceiling_at / scale));
  TF_LITE_ENSURE_MSG(c, fabs(q_floor) <= INT32_MAX && fabs(q_ceiling) <= INT32_MAX,
                     "the activation's limits are outside of int32 at this scale");
  if (q_floor > *low) *low = (int)q_floor;
  if (from_above && q_ceiling < *high) *high = (int)q_ceiling;
  return kTfLiteOk;
}

static TfLiteStatus convolution_multiplier(Context* c, const Tensor* input, const Tensor* filter, const Tensor* bias,
                                           const Tensor* output, double* multiplier) {
  OW_REQUIRE(c != NULL && input != NULL && filter != NULL && output != NULL && multiplier != NULL, kTfLiteError);
  const double product = (double)(input->params.scale * filter->params.scale);
  const double out = (double)output->params.scale;
  TF_LITE_ENSURE_MSG(c, product >= 0 && out > 0, "scales of a quantised convolution are above 0");
  if (bias != NULL) {
    TF_LITE_ENSURE_MSG(c, fabs(product - (double)bias->params.scale) / out <= 0.02,
                       "the bias has another scale than input times filter");
  }
  *multiplier = product / out;
  return kTfLiteOk;
}

DEFINE(TfLiteStatus, _ZN6tflite32GetQuantizedConvolutionMultiplerEP13TfLiteContextPK12TfLiteTensorS4_S4_PS2_Pd,
       (Context * c, const Tensor* input, const Tensor* filter, const Tensor* bias, Tensor* output, double* multiplier)) {
  return convolution_multiplier(c, input, filter, bias, output, multiplier);
}
DEFINE(TfLiteStatus, _ZN6tflite32GetQuantizedConvolutionMultiplerEP13TfLiteContextPK12TfLiteTensorS4_PS2_Pd,
       (Context * c, const Tensor* input, const Tensor* filter, Tensor* output, double* multiplier)) {
  return convolution_multiplier(c, input, filter, NULL, output, multiplier);
}

#define POPULATE                                                                                                  \
  _ZN6tflite37PopulateConvolutionQuantizationParamsEP13TfLiteContextPK12TfLiteTensorS4_S4_PS2_RK21TfLiteFusedActivationPiS9_S9_S9_S9_S9_
#define POPULATE_CHANNELS                                                                                         \
  _ZN6tflite37PopulateConvolutionQuantizationParamsEP13TfLiteContextPK12TfLiteTensorS4_S4_PS2_RK21TfLiteFusedActivationPiS9_S9_S9_S9_S9_i

DEFINE(TfLiteStatus, POPULATE_CHANNELS,
       (Context * c, const Tensor* input, const Tensor* filter, const Tensor* bias, Tensor* output,
        const TfLiteFusedActivation* activation, int32_t* multiplier, int* shift, int32_t* low, int32_t* high,
        int32_t* channel_multiplier, int32_t* channel_shift, int channels)) {
  OW_REQUIRE(c != NULL && input != NULL && filter != NULL && output != NULL && activation != NULL, kTfLiteError);
  TF_LITE_ENSURE_EQ(c, input->quantization.type, kTfLiteAffineQuantization);
  TF_LITE_ENSURE_EQ(c, filter->quantization.type, kTfLiteAffineQuantization);
  const TfLiteAffineQuantization* affine = filter->quantization.params;
  TF_LITE_ENSURE(c, affine != NULL && affine->scale != NULL && affine->scale->size > 0);
  const bool per_channel = affine->scale->size > 1;
  if (per_channel) {
    TF_LITE_ENSURE(c, input->type == kTfLiteInt8 || input->type == kTfLiteInt16);
    TF_LITE_ENSURE(c, filter->type == kTfLiteInt8 || filter->type == kTfLiteInt4);
    TF_LITE_ENSURE_EQ(c, affine->scale->size, channels);
    TF_LITE_ENSURE(c, affine->quantized_dimension >= 0 && affine->quantized_dimension < filter->dims->size);
    TF_LITE_ENSURE_EQ(c, channels, filter->dims->data[affine->quantized_dimension]);
  }
  TF_LITE_ENSURE_MSG(c, output->params.scale > 0, "scales of a quantised convolution are above 0");
  for (int i = 0; i < channels; ++i) {
    const double scale = (double)affine->scale->data[per_channel ? i : 0];
    int exponent;
    ow_as_integer((double)input->params.scale * scale / (double)output->params.scale, channel_multiplier + i, &exponent);
    channel_shift[i] = exponent;
  }
  if (input->type == kTfLiteUInt8) {
    double real = 0;
    int exponent;
    TF_LITE_ENSURE_STATUS(convolution_multiplier(c, input, filter, bias, output, &real));
    ow_as_integer(real, multiplier, &exponent);
    *shift = -exponent;
  }
  if (input->type == kTfLiteUInt8 || input->type == kTfLiteInt8 || input->type == kTfLiteInt16) {
    TF_LITE_ENSURE_STATUS(ACTIVATION_RANGE(c, *activation, output, low, high));
  }
  return kTfLiteOk;
}

DEFINE(TfLiteStatus, POPULATE,
       (Context * c, const Tensor* input, const Tensor* filter, const Tensor* bias, Tensor* output,
        const TfLiteFusedActivation* activation, int32_t* multiplier, int* shift, int32_t* low, int32_t* high,
        int32_t* channel_multiplier, int32_t* channel_shift)) {
  OW_REQUIRE(c != NULL && filter != NULL, kTfLiteError);
  const TfLiteAffineQuantization* affine = filter->quantization.params;
  TF_LITE_ENSURE(c, filter->quantization.type == kTfLiteAffineQuantization && affine != NULL && affine->scale != NULL);
  return POPULATE_CHANNELS(c, input, filter, bias, output, activation, multiplier, shift, low, high,
                           channel_multiplier, channel_shift, affine->scale->size);
}
