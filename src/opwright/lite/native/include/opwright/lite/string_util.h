/* C++ helpers for tensors of strings: reading them, collecting new ones. */
#ifndef OPWRIGHT_LITE_STRING_UTIL_H_
#define OPWRIGHT_LITE_STRING_UTIL_H_

#ifndef __cplusplus
#error "string_util.h is for C++: from C, use TfLiteOpaqueTensorGetString and TfLiteOpaqueTensorWriteStrings"
#endif

#include <cstring>
#include <string>
#include <vector>

#include "common.h"

namespace tflite {

using std::string;

/* Bytes of a string; no 0 behind them. */
struct StringRef {
  const char* str;
  size_t len;
};

/* A buffer of strings: how many, where each begins and the last ends (all int32), then their bytes. */
inline int GetStringCount(const void* raw_buffer) {
  int32_t count = 0;
  if (raw_buffer != nullptr) std::memcpy(&count, raw_buffer, sizeof count);
  return count;
}
inline int GetStringCount(const TfLiteTensor* tensor) { return GetStringCount(tensor->data.raw_const); }

inline StringRef GetString(const void* raw_buffer, int index) {
  int32_t ends[2];
  std::memcpy(ends, static_cast<const char*>(raw_buffer) + sizeof(int32_t) * (1 + static_cast<size_t>(index)),
              sizeof ends);
  return {static_cast<const char*>(raw_buffer) + ends[0], static_cast<size_t>(ends[1] - ends[0])};
}
inline StringRef GetString(const TfLiteTensor* tensor, int index) { return GetString(tensor->data.raw_const, index); }

/* Strings one after another, until they become a tensor. */
class DynamicBuffer {
 public:
  explicit DynamicBuffer(size_t max_length = INT32_MAX) : max_length_(max_length) {}
  /* kTfLiteError, and nothing is added, where the strings would be longer together than max_length. */
  TfLiteStatus AddString(const char* str, size_t len) {
    if (len > max_length_ || text_.size() > max_length_ - len) return kTfLiteError;
    text_.append(str, len);
    ends_.push_back(text_.size());
    return kTfLiteOk;
  }
  TfLiteStatus AddString(const StringRef& string) { return AddString(string.str, string.len); }
  void AddJoinedString(const std::vector<StringRef>& strings, StringRef separator) {
    for (size_t i = 0; i < strings.size(); ++i) {
      if (i > 0) text_.append(separator.str, separator.len);
      text_.append(strings[i].str, strings[i].len);
    }
    ends_.push_back(text_.size());
  }
  void AddJoinedString(const std::vector<StringRef>& strings, char separator) {
    AddJoinedString(strings, StringRef{&separator, 1});
  }

  /* Makes the tensor hold the strings, in a shape of as many elements, which it takes; null: the shape it has. */
  TfLiteStatus WriteToTensor(TfLiteTensor* tensor, TfLiteIntArray* new_shape) const {
    const size_t count = ends_.size(), head = (count + 2) * sizeof(int32_t);
    if (head + text_.size() > static_cast<size_t>(INT32_MAX)) {
      TfLiteIntArrayFree(new_shape);
      return kTfLiteError;
    }
    std::vector<int32_t> places(1, static_cast<int32_t>(count));
    places.push_back(static_cast<int32_t>(head));
    for (size_t end : ends_) places.push_back(static_cast<int32_t>(head + end));
    if (tensor->allocation_type != kTfLiteDynamic) {
      TfLiteTensorDataFree(tensor);
      tensor->allocation_type = kTfLiteDynamic;
    }
    if (new_shape != nullptr) {
      TfLiteIntArrayFree(tensor->dims);
      tensor->dims = new_shape;
    }
    const TfLiteStatus status = TfLiteTensorResizeMaybeCopy(head + text_.size(), tensor, false);
    if (status != kTfLiteOk) return status;
    std::memcpy(tensor->data.raw, places.data(), head);
    if (!text_.empty()) std::memcpy(tensor->data.raw + head, text_.data(), text_.size());
    return kTfLiteOk;
  }
  TfLiteStatus WriteToTensor(TfLiteTensor* tensor) const { return WriteToTensorAsVector(tensor); }
  TfLiteStatus WriteToTensorAsVector(TfLiteTensor* tensor) const {
    TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
    shape->data[0] = static_cast<int>(ends_.size());
    return WriteToTensor(tensor, shape);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
  size_t max_length_;
};

}  // namespace tflite

#endif
