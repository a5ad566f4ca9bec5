/* C++ types and the TfLiteTypes they stand for: typeToTfLiteType<float>() is kTfLiteFloat32. */
#ifndef OPWRIGHT_LITE_TYPE_OF_H_
#define OPWRIGHT_LITE_TYPE_OF_H_

#ifndef __cplusplus
#error "type_of.h is for C++"
#endif

#include <complex>
#include <cstdint>
#include <string>

#include "common.h"

namespace tflite {

template <typename T>
constexpr TfLiteType typeToTfLiteType() {
  return kTfLiteNoType;
}
template <TfLiteType kType>
struct TfLiteTypeToType {}; /* ::Type */

#define OW_TYPE(T, number)                         \
  template <>                                      \
  constexpr TfLiteType typeToTfLiteType<T>() {     \
    return number;                                 \
  }                                                \
  template <>                                      \
  struct TfLiteTypeToType<number> {                \
    using Type = T;                                \
  };
OW_TYPE(float, kTfLiteFloat32)
OW_TYPE(int32_t, kTfLiteInt32)
OW_TYPE(uint8_t, kTfLiteUInt8)
OW_TYPE(int64_t, kTfLiteInt64)
OW_TYPE(std::string, kTfLiteString)
OW_TYPE(bool, kTfLiteBool)
OW_TYPE(int16_t, kTfLiteInt16)
OW_TYPE(std::complex<float>, kTfLiteComplex64)
OW_TYPE(int8_t, kTfLiteInt8)
OW_TYPE(TfLiteFloat16, kTfLiteFloat16)
OW_TYPE(double, kTfLiteFloat64)
OW_TYPE(std::complex<double>, kTfLiteComplex128)
OW_TYPE(uint64_t, kTfLiteUInt64)
OW_TYPE(uint32_t, kTfLiteUInt32)
OW_TYPE(uint16_t, kTfLiteUInt16)
OW_TYPE(TfLiteBFloat16, kTfLiteBFloat16)
#undef OW_TYPE

}  // namespace tflite

#endif
