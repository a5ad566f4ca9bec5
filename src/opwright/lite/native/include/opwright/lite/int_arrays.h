/* C++ helpers for TfLiteIntArray: from vectors, by owning pointers, in loops. */
#ifndef OPWRIGHT_LITE_INT_ARRAYS_H_
#define OPWRIGHT_LITE_INT_ARRAYS_H_

#ifndef __cplusplus
#error "int_arrays.h is for C++: from C, use the functions of tensorflow/lite/c/common.h"
#endif

#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include "common.h"

namespace tflite {

/* New arrays, which ResizeTensor takes; null where there is no memory. */
inline TfLiteIntArray* ConvertArrayToTfLiteIntArray(int ndims, const int* dims) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(ndims);
  if (array != nullptr && ndims > 0) std::memcpy(array->data, dims, static_cast<size_t>(ndims) * sizeof(int));
  return array;
}
inline TfLiteIntArray* ConvertVectorToTfLiteIntArray(const std::vector<int>& input) {
  return ConvertArrayToTfLiteIntArray(static_cast<int>(input.size()), input.data());
}

inline bool EqualArrayAndTfLiteIntArray(const TfLiteIntArray* a, int b_size, const int* b) {
  return a != nullptr && TfLiteIntArrayEqualsArray(a, b_size, b) != 0;
}

/* Arrays that end with their scope; release() before ResizeTensor. */
struct TfLiteIntArrayDeleter {
  void operator()(TfLiteIntArray* array) const { TfLiteIntArrayFree(array); }
};
typedef std::unique_ptr<TfLiteIntArray, TfLiteIntArrayDeleter> IntArrayUniquePtr;

inline IntArrayUniquePtr BuildTfLiteArray(int size) { return IntArrayUniquePtr(TfLiteIntArrayCreate(size)); }
inline IntArrayUniquePtr BuildTfLiteArray(int size, const int* data) {
  return IntArrayUniquePtr(ConvertArrayToTfLiteIntArray(size, data));
}
inline IntArrayUniquePtr BuildTfLiteArray(std::initializer_list<int> values) {
  return BuildTfLiteArray(static_cast<int>(values.size()), values.begin());
}
inline IntArrayUniquePtr BuildTfLiteArray(const std::vector<int>& values) {
  return BuildTfLiteArray(static_cast<int>(values.size()), values.data());
}
inline IntArrayUniquePtr BuildTfLiteArray(const TfLiteIntArray& array) {
  return BuildTfLiteArray(array.size, array.data);
}

/* for (int index : TfLiteIntArrayView(node->inputs)) */
class TfLiteIntArrayView {
 public:
  typedef const int* const_iterator;
  explicit TfLiteIntArrayView(const TfLiteIntArray* array) : array_(array) {}
  const_iterator begin() const { return array_ == nullptr ? nullptr : array_->data; }
  const_iterator end() const { return begin() + size(); }
  size_t size() const { return array_ == nullptr ? 0 : static_cast<size_t>(array_->size); }
  int operator[](size_t i) const { return array_->data[i]; }

 private:
  const TfLiteIntArray* array_;
};

}  // namespace tflite

#endif
