/* C++ helpers of quantised operators: real factors as integers with a shift, and products with them. */
#ifndef OPWRIGHT_LITE_ARITHMETIC_H_
#define OPWRIGHT_LITE_ARITHMETIC_H_

#ifndef __cplusplus
#error "arithmetic.h is for C++"
#endif

#include <cstdint>
#include <limits>

#include "builtin_op_data.h"
#include "compatibility.h"
#include "helpers.h"

namespace tflite {

template <typename T>
T ActivationFunctionWithMinMax(T x, T output_activation_min, T output_activation_max) {
  const T above = x < output_activation_min ? output_activation_min : x;
  return above > output_activation_max ? output_activation_max : above;
}

/* double_multiplier = quantized_multiplier * 2^(shift - 31), the multiplier with 31 bits; 0 for what is too small. */
inline void QuantizeMultiplier(double double_multiplier, int32_t* quantized_multiplier, int* shift) {
  ow_as_integer(double_multiplier, quantized_multiplier, shift);
}
/* The same for multipliers above 1, and for those between 0 and 1: left_shift is then 0 or less. */
inline void QuantizeMultiplierGreaterThanOne(double double_multiplier, int32_t* quantized_multiplier, int* left_shift) {
  TFLITE_CHECK_GT(double_multiplier, 1.0);
  ow_as_integer(double_multiplier, quantized_multiplier, left_shift);
}
inline void QuantizeMultiplierSmallerThanOneExp(double double_multiplier, int32_t* quantized_multiplier,
                                                int* left_shift) {
  TFLITE_CHECK(double_multiplier > 0.0 && double_multiplier < 1.0);
  ow_as_integer(double_multiplier, quantized_multiplier, left_shift);
}

/* x times such a factor, rounded twice as the kernels of the official run time do: the product to its upper 31 bits,
   halves up, then the shift to the right, halves away from 0. */
inline int32_t MultiplyByQuantizedMultiplier(int32_t x, int32_t quantized_multiplier, int shift) {
  const int left = shift > 31 ? 31 : shift > 0 ? shift : 0, right = shift < -31 ? 31 : shift > 0 ? 0 : -shift;
  const int32_t shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  const int64_t product = static_cast<int64_t>(shifted) * quantized_multiplier;
  const int64_t half = INT64_C(1) << 30;
  int64_t high = (product + (product >= 0 ? half : 1 - half)) / (INT64_C(1) << 31);
  if (high > std::numeric_limits<int32_t>::max()) high = std::numeric_limits<int32_t>::max(); /* -1 times -1 */
  const int64_t rest = high & ((INT64_C(1) << right) - 1);
  const int64_t middle = (((INT64_C(1) << right) - 1) >> 1) + (high < 0 ? 1 : 0);
  return static_cast<int32_t>((high >> right) + (rest > middle ? 1 : 0));
}
inline int32_t MultiplyByQuantizedMultiplierSmallerThanOneExp(int32_t x, int32_t quantized_multiplier, int left_shift) {
  return MultiplyByQuantizedMultiplier(x, quantized_multiplier, left_shift);
}
inline int32_t MultiplyByQuantizedMultiplierGreaterThanOne(int32_t x, int32_t quantized_multiplier, int left_shift) {
  return MultiplyByQuantizedMultiplier(x, quantized_multiplier, left_shift);
}

}  // namespace tflite

#endif
