/* C++ views of tensors: elements under their type, shapes by value, lists of both. */
#ifndef OPWRIGHT_LITE_TENSOR_CTYPES_H_
#define OPWRIGHT_LITE_TENSOR_CTYPES_H_

#ifndef __cplusplus
#error "tensor_ctypes.h is for C++"
#endif

#include <cstring>
#include <initializer_list>
#include <vector>

#include "common.h"
#include "compatibility.h"
#include "parameters.h"

namespace tflite {

/* A tensor's elements; null for a null tensor. */
template <typename T>
T* GetTensorData(TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<T*>(tensor->data.raw);
}
template <typename T>
const T* GetTensorData(const TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : reinterpret_cast<const T*>(tensor->data.raw_const);
}

/* A shape by value: up to six sizes inside, more on the heap. */
class RuntimeShape {
 public:
  static constexpr int kMaxSmallSize = 6;

  RuntimeShape() : size_(0) {}
  explicit RuntimeShape(int count) : size_(0) { Resize(count); }
  RuntimeShape(int count, int32_t size) : size_(0) {
    Resize(count);
    for (int i = 0; i < count; ++i) SetDim(i, size);
  }
  RuntimeShape(int count, const int32_t* sizes) : size_(0) { ReplaceWith(count, sizes); }
  RuntimeShape(const std::initializer_list<int> sizes) : size_(0) { BuildFrom(sizes); }
  RuntimeShape(const RuntimeShape& other) : size_(0) { ReplaceWith(other.size_, other.DimsData()); }
  RuntimeShape& operator=(const RuntimeShape& other) {
    if (this != &other) ReplaceWith(other.size_, other.DimsData());
    return *this;
  }
  ~RuntimeShape() {
    if (OnHeap()) delete[] pointer_;
  }

  /* The shape with sizes of 1 in front, to that many. */
  static RuntimeShape ExtendedShape(int count, const RuntimeShape& shape) {
    RuntimeShape extended(count, 1);
    const int more = count - shape.size_;
    for (int i = 0; i < shape.size_ && i + more >= 0; ++i) extended.SetDim(i + more, shape.Dims(i));
    return extended;
  }

  bool operator==(const RuntimeShape& other) const {
    return size_ == other.size_ && std::memcmp(DimsData(), other.DimsData(), Bytes(size_)) == 0;
  }
  bool operator!=(const RuntimeShape& other) const { return !(*this == other); }

  int32_t DimensionsCount() const { return size_; }
  int32_t Dims(int i) const { return DimsData()[i]; }
  void SetDim(int i, int32_t size) { DimsData()[i] = size; }
  int32_t* DimsData() { return OnHeap() ? pointer_ : inside_; }
  const int32_t* DimsData() const { return OnHeap() ? pointer_ : inside_; }

  void Resize(int count) {
    if (OnHeap()) delete[] pointer_;
    size_ = count;
    if (OnHeap()) pointer_ = new int32_t[static_cast<size_t>(count)];
  }
  void ReplaceWith(int count, const int32_t* sizes) {
    Resize(count);
    int32_t* const to = DimsData();
    for (int i = 0; i < count; ++i) to[i] = sizes[i]; /* memcpy: compilers warn of the room inside */
  }
  template <typename T>
  void BuildFrom(const T& sizes) {
    Resize(static_cast<int>(sizes.end() - sizes.begin()));
    int i = 0;
    for (auto size : sizes) SetDim(i++, static_cast<int32_t>(size));
  }

  int FlatSize() const {
    int count = 1;
    for (int i = 0; i < size_; ++i) count *= Dims(i);
    return count;
  }

 private:
  bool OnHeap() const { return size_ > kMaxSmallSize; }
  static size_t Bytes(int count) { return static_cast<size_t>(count) * sizeof(int32_t); }

  int32_t size_;
  union {
    int32_t inside_[kMaxSmallSize];
    int32_t* pointer_;
  };
};

inline RuntimeShape GetTensorShape(const TfLiteTensor* tensor) {
  if (tensor == nullptr || tensor->dims == nullptr) return RuntimeShape();
  RuntimeShape shape(tensor->dims->size);
  for (int i = 0; i < tensor->dims->size; ++i) shape.SetDim(i, tensor->dims->data[i]);
  return shape;
}

/* A size that two shapes have in common: it is an error of the operator where they have not. */
inline int MatchingDim(const RuntimeShape& shape1, int index1, const RuntimeShape& shape2, int index2) {
  TFLITE_DCHECK_EQ(shape1.Dims(index1), shape2.Dims(index2));
  return shape1.Dims(index1) < shape2.Dims(index2) ? shape1.Dims(index1) : shape2.Dims(index2);
}
template <typename... More>
int MatchingDim(const RuntimeShape& shape1, int index1, const RuntimeShape& shape2, int index2, More... more) {
  TFLITE_DCHECK_EQ(shape1.Dims(index1), shape2.Dims(index2));
  return MatchingDim(shape1, index1, more...);
}

/* Elements of shapes that are the same. */
inline int MatchingFlatSize(const RuntimeShape& shape) { return shape.FlatSize(); }
template <typename... More>
int MatchingFlatSize(const RuntimeShape& shape, const RuntimeShape& other, const More&... more) {
  TFLITE_DCHECK(shape == other);
  return MatchingFlatSize(other, more...);
}

/* Elements of all dimensions but one. */
inline int FlatSizeSkipDim(const RuntimeShape& shape, int skipped) {
  int count = 1;
  for (int i = 0; i < shape.DimensionsCount(); ++i) count *= i == skipped ? 1 : shape.Dims(i);
  return count;
}

/* The place of an element of a tensor of four dimensions, and of five. */
inline int Offset(const RuntimeShape& shape, int i, int j, int k, int l) {
  return ((i * shape.Dims(1) + j) * shape.Dims(2) + k) * shape.Dims(3) + l;
}
inline int Offset(const RuntimeShape& shape, int i, int j, int k, int l, int m) {
  return Offset(shape, i, j, k, l) * shape.Dims(4) + m;
}

/* Elements and shapes of a node's inputs or outputs, for kernels over any number of them. */
template <typename T>
class VectorOfTensors {
 public:
  VectorOfTensors(const TfLiteContext& context, const TfLiteIntArray& tensor_list) {
    const size_t count = static_cast<size_t>(tensor_list.size);
    shapes_.reserve(count); /* pointers to what is in it stay */
    for (size_t i = 0; i < count; ++i) {
      TfLiteTensor* tensor = context.tensors + tensor_list.data[i];
      data_.push_back(GetTensorData<T>(tensor));
      shapes_.push_back(GetTensorShape(tensor));
      shape_pointers_.push_back(&shapes_.back());
    }
  }
  T* const* data() const { return data_.data(); }
  const RuntimeShape* const* shapes() const { return shape_pointers_.data(); }
  size_t size() const { return data_.size(); }

 private:
  VectorOfTensors(const VectorOfTensors&);
  std::vector<T*> data_;
  std::vector<RuntimeShape> shapes_;
  std::vector<const RuntimeShape*> shape_pointers_;
};

}  // namespace tflite

#endif
