/* C++ helpers for kernels that move elements about, of whatever type: one after another into a tensor. */
#ifndef OPWRIGHT_LITE_WRITERS_H_
#define OPWRIGHT_LITE_WRITERS_H_

#ifndef __cplusplus
#error "writers.h is for C++"
#endif

#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "string_util.h"
#include "tensor_ctypes.h"

namespace tflite {

inline RuntimeShape GetTensorShape(std::vector<int32_t> data) {
  return RuntimeShape(static_cast<int>(data.size()), data.data());
}

/* Tensors of 8 bits with the numbers that they stand for. */
class VectorOfQuantizedTensors : public VectorOfTensors<uint8_t> {
 public:
  VectorOfQuantizedTensors(const TfLiteContext& context, const TfLiteIntArray& tensor_list)
      : VectorOfTensors<uint8_t>(context, tensor_list) {
    for (int i = 0; i < tensor_list.size; ++i) {
      zero_points_.push_back(context.tensors[tensor_list.data[i]].params.zero_point);
      scales_.push_back(context.tensors[tensor_list.data[i]].params.scale);
    }
  }
  const float* scale() const { return scales_.data(); }
  const int32_t* zero_point() const { return zero_points_.data(); }

 private:
  std::vector<int32_t> zero_points_;
  std::vector<float> scales_;
};

/* Copies elements from anywhere in a tensor to the next places of another. */
template <typename T>
class SequentialTensorWriter {
 public:
  SequentialTensorWriter(const TfLiteTensor* input, TfLiteTensor* output)
      : from_(GetTensorData<T>(input)), to_(GetTensorData<T>(output)) {}
  SequentialTensorWriter(const T* input_data, T* output_data) : from_(input_data), to_(output_data) {}
  void Write(int position) { *to_++ = from_[position]; }
  void WriteN(int position, int len) { to_ = std::copy(from_ + position, from_ + position + len, to_); }

 private:
  const T* from_;
  T* to_;
};

/* Strings become the tensor's when the writer ends. */
template <>
class SequentialTensorWriter<std::string> {
 public:
  SequentialTensorWriter(const TfLiteTensor* input, TfLiteTensor* output) : from_(input), to_(output) {}
  ~SequentialTensorWriter() { strings_.WriteToTensor(to_, nullptr); }
  void Write(int position) { strings_.AddString(GetString(from_, position)); }
  void WriteN(int position, int len) {
    for (int i = 0; i < len; ++i) Write(position + i);
  }

 private:
  SequentialTensorWriter(const SequentialTensorWriter&);
  const TfLiteTensor* from_;
  TfLiteTensor* to_;
  DynamicBuffer strings_;
};

}  // namespace tflite

#endif
