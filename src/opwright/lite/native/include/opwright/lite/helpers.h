/* The small functions behind the C++ helpers of kernel_util.h, in C, so that a run time can offer them too. */
#ifndef OPWRIGHT_LITE_HELPERS_H_
#define OPWRIGHT_LITE_HELPERS_H_

#include <math.h>

#include "common.h"

/* The tensor at a place of a node's list; null where the list is not as long, or the tensor was left out. */
static inline TfLiteTensor* ow_tensor_at(const TfLiteContext* context, const TfLiteIntArray* indices, int place) {
  if (indices == NULL || place < 0 || place >= indices->size) return NULL;
  if (context->tensors == NULL) {
    return indices->data[place] < 0 || context->GetTensor == NULL ? NULL
                                                                  : context->GetTensor(context, indices->data[place]);
  }
  if (indices->data[place] < 0 || (size_t)indices->data[place] >= context->tensors_size) return NULL;
  return context->tensors + indices->data[place];
}

/* The same, with a report and kTfLiteError in place of null. what: the list's name. */
static inline TfLiteStatus ow_tensor_or_error(const TfLiteContext* context, const TfLiteIntArray* indices, int place,
                                              const char* what, TfLiteTensor** tensor) {
  *tensor = ow_tensor_at(context, indices, place);
  if (*tensor != NULL) return kTfLiteOk;
  context->ReportError((TfLiteContext*)context, "the node has no %s %d: it was left out, or there are %d", what, place,
                       indices == NULL ? 0 : indices->size);
  return kTfLiteError;
}

/* Product of sizes. Reports and gives kTfLiteError for a negative size and where a size_t does not hold it. */
static inline TfLiteStatus ow_shape_product(TfLiteContext* context, const int* dims, size_t count, const char* what,
                                            size_t* product) {
  *product = 1;
  for (size_t i = 0; i < count; ++i) {
    size_t size = (size_t)dims[i];
    if (dims[i] < 0 || (size != 0 && *product > SIZE_MAX / size)) {
      context->ReportError(context, "%s: size %d of dimension %d is negative, or makes the product too large",
                           what == NULL ? "shape" : what, dims[i], (int)i);
      return kTfLiteError;
    }
    *product *= size;
  }
  return kTfLiteOk;
}

static inline int ow_same_shapes(const TfLiteTensor* a, const TfLiteTensor* b) {
  if (a->dims == NULL || b->dims == NULL) return a->dims == b->dims;
  if (a->dims->size != b->dims->size) return 0;
  for (int i = 0; i < a->dims->size; ++i) {
    if (a->dims->data[i] != b->dims->data[i]) return 0;
  }
  return 1;
}

static inline int ow_has_unknown_size(const TfLiteTensor* t) {
  for (int i = 0; t->dims_signature != NULL && i < t->dims_signature->size; ++i) {
    if (t->dims_signature->data[i] == -1) return 1;
  }
  return 0;
}

/* real = multiplier * 2^(exponent - 31), the multiplier with 31 bits; 0 for what is too small. */
static inline void ow_as_integer(double real, int32_t* multiplier, int* exponent) {
  int64_t fixed = (int64_t)round(frexp(real, exponent) * 2147483648.0);
  if (fixed == INT64_C(2147483648)) {
    fixed /= 2;
    ++*exponent;
  }
  if (fixed == 0 || *exponent < -31) *exponent = 0, fixed = 0;
  *multiplier = (int32_t)fixed;
}

static inline int ow_is_mobile(void) {
#if defined(__ANDROID__) || (defined(__APPLE__) && defined(TARGET_OS_IPHONE) && TARGET_OS_IPHONE)
  return 1;
#else
  return 0;
#endif
}

#endif
