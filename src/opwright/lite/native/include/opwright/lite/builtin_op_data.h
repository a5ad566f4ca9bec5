/* Words that options of builtin operators are made of. */
#ifndef OPWRIGHT_LITE_BUILTIN_OP_DATA_H_
#define OPWRIGHT_LITE_BUILTIN_OP_DATA_H_

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

#ifdef __cplusplus
}
#endif

#endif
