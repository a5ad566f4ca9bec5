/* C++ helpers of quantised operators that look their results up: tables of a function's values, and reading them.

   A table for 8 bits has a value for each argument. One for 16 bits has 513, at each 128th argument from the least on,
   and the values between lie on lines between these. */
#ifndef OPWRIGHT_LITE_LOOKUP_H_
#define OPWRIGHT_LITE_LOOKUP_H_

#ifndef __cplusplus
#error "lookup.h is for C++"
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tflite {

template <typename T>
constexpr int LUTSize() {
  static_assert(std::is_same<T, uint8_t>::value || std::is_same<T, int8_t>::value || std::is_same<T, int16_t>::value,
                "tables are of uint8_t, int8_t and int16_t");
  return sizeof(T) == 1 ? 256 : 513;
}

template <typename Out>
Out LUTLookup(uint8_t value, const Out* lut) {
  return lut[value];
}
template <typename Out>
Out LUTLookup(int8_t value, const Out* lut) {
  return lut[value + 128];
}
inline int16_t LUTLookup(int16_t value, const int16_t* lut) {
  const int place = (value + 32768) >> 7, rest = value & 127; /* value = 128 place - 32768 + rest */
  return static_cast<int16_t>(lut[place] + (((lut[place + 1] - lut[place]) * rest + 64) >> 7));
}
template <typename In, typename Out>
Out lut_lookup(In value, const Out* lut) { /* what it was called until 2022 */
  return LUTLookup(value, lut);
}

/* Values of a function of real numbers as a table. `transform` is called with the number, or the number and `context`. */
namespace ow_lookup {

inline float Call(float (*transform)(float), const void*, float x) { return transform(x); }
inline float Call(float (*transform)(float, const void*), const void* context, float x) {
  return transform(x, context);
}
template <typename T>
T Clamped(float x) {
  return static_cast<T>(std::min(std::max(x, static_cast<float>(std::numeric_limits<T>::min())),
                                 static_cast<float>(std::numeric_limits<T>::max())));
}

template <typename T, typename Transform>
typename std::enable_if<sizeof(T) == 1>::type Populate(float input_scale, int32_t input_zero_point, float output_scale,
                                                       int32_t output_zero_point, Transform transform,
                                                       const void* context, T* lut) {
  const int least = std::numeric_limits<T>::min();
  for (int i = 0; i < 256; ++i) {
    const float y = Call(transform, context, input_scale * static_cast<float>(least + i - input_zero_point));
    lut[i] = Clamped<T>(std::round(y * (1.0f / output_scale)) + static_cast<float>(output_zero_point));
  }
}

/* At each point the value there, less half of what the line to the next is off in the middle. */
template <typename T, typename Transform>
typename std::enable_if<sizeof(T) == 2>::type Populate(float input_scale, int32_t input_zero_point, float output_scale,
                                                       int32_t output_zero_point, Transform transform,
                                                       const void* context, T* lut) {
  const float first = input_scale * static_cast<float>(-32768 - input_zero_point);
  const float last = input_scale * static_cast<float>(32767 - input_zero_point);
  const float least = output_scale * static_cast<float>(-32768 - output_zero_point);
  const float most = output_scale * static_cast<float>(32767 - output_zero_point);
  const float step = (last - first) / 512.0f, factor = 65536.0f / (most - least);
  for (int i = 0; i < 512; ++i) {
    const float x = first + static_cast<float>(i) * step;
    const float here = std::round(Call(transform, context, x) * factor);
    const float next = Call(transform, context, first + static_cast<float>(i + 1) * step) * factor;
    const float middle = std::round(Call(transform, context, x + step / 2.0f) * factor);
    lut[i] = Clamped<T>(here - std::round((std::round((next + here) / 2.0f) - middle) / 2.0f));
  }
  lut[512] = Clamped<T>(std::round(Call(transform, context, last) * factor));
}

}  // namespace ow_lookup

template <typename T>
void LUTPopulate(float input_scale, int32_t input_zero_point, float output_scale, int32_t output_zero_point,
                 float (*transform)(float), T* lut) {
  ow_lookup::Populate<T>(input_scale, input_zero_point, output_scale, output_zero_point, transform, nullptr, lut);
}
template <typename T>
void LUTPopulate(float input_scale, int32_t input_zero_point, float output_scale, int32_t output_zero_point,
                 float (*transform)(float, const void*), const void* transform_params, T* lut) {
  ow_lookup::Populate<T>(input_scale, input_zero_point, output_scale, output_zero_point, transform, transform_params,
                         lut);
}

namespace reference_integer_ops {
template <typename In, typename Out>
void LookupTable(const In* input_data, int num_elements, const Out* lut, Out* output_data) {
  for (int i = 0; i < num_elements; ++i) output_data[i] = LUTLookup(input_data[i], lut);
}
}  // namespace reference_integer_ops

}  // namespace tflite

#endif
