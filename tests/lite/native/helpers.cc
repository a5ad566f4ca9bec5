// The helpers as a library compiled against official headers calls them: declared, not inline, so that their mangled
// names are undefined; and RuntimeShape as a class whose members are elsewhere. Each probe gives what Python compares.
#include <cstring>
#include <initializer_list>
#include <string>

#include "opwright/lite/builtin_op_data.h"
#include "tensorflow/lite/c/common.h"

namespace tflite {
const TfLiteTensor* GetInput(const TfLiteContext*, const TfLiteNode*, int);
TfLiteStatus GetInputSafe(const TfLiteContext*, const TfLiteNode*, int, const TfLiteTensor**);
TfLiteTensor* GetOutput(TfLiteContext*, const TfLiteNode*, int);
TfLiteTensor* GetVariableInput(TfLiteContext*, const TfLiteNode*, int);
bool HaveSameShapes(const TfLiteTensor*, const TfLiteTensor*);
bool HasUnspecifiedDimension(const TfLiteTensor*);
int TfLiteTypeGetSize(TfLiteType);
int TfLiteTypeGetSizeBits(TfLiteType);
bool IsMobilePlatform();
TfLiteStatus CheckedShapeProduct(TfLiteContext*, const int*, int, const char*, size_t&);
TfLiteStatus CheckedShapeProduct(TfLiteContext*, std::initializer_list<int>, const char*, size_t&);
TfLiteStatus CheckedShapeProductToInt(TfLiteContext*, std::initializer_list<int>, const char*, int&);
TfLiteStatus CalculateShapeForBroadcast(TfLiteContext*, const TfLiteTensor*, const TfLiteTensor*, TfLiteIntArray**);
TfLiteStatus CalculateShapeForBroadcast(TfLiteContext*, const TfLiteTensor*, const TfLiteTensor*, const TfLiteTensor*,
                                        TfLiteIntArray**);
TfLiteStatus GetOutputShapeFromInput(TfLiteContext*, const TfLiteTensor*, TfLiteIntArray**);
std::string GetShapeDebugString(const TfLiteIntArray*);
std::string GetTensorDebugString(const TfLiteTensor*);
TfLiteStatus CalculateActivationRangeQuantized(TfLiteContext*, TfLiteFusedActivation, TfLiteTensor*, int*, int*);
TfLiteStatus GetQuantizedConvolutionMultipler(TfLiteContext*, const TfLiteTensor*, const TfLiteTensor*,
                                              const TfLiteTensor*, TfLiteTensor*, double*);
TfLiteStatus PopulateConvolutionQuantizationParams(TfLiteContext*, const TfLiteTensor*, const TfLiteTensor*,
                                                   const TfLiteTensor*, TfLiteTensor*, const TfLiteFusedActivation&,
                                                   int32_t*, int*, int32_t*, int32_t*, int32_t*, int32_t*, int);
class RuntimeShape {
 public:
  ~RuntimeShape();
  int32_t Dims(int i) const;
  int FlatSize() const;
  int32_t size_;
  union {
    int32_t dims_[6];
    int32_t* dims_pointer_;
  };
};
RuntimeShape GetTensorShape(const TfLiteTensor*);
}  // namespace tflite

static TfLiteTensor Tensor(TfLiteType type, int rank, const int* dims) {
  TfLiteTensor t;
  std::memset(static_cast<void*>(&t), 0, sizeof t);
  t.type = type;
  t.dims = TfLiteIntArrayCreate(rank);
  for (int i = 0; i < rank; ++i) t.dims->data[i] = dims[i];
  return t;
}

static void Drop(TfLiteTensor* t) { TfLiteIntArrayFree(t->dims); }

extern "C" {
// Which of: flat size, size at `place`, rank.
int shape_of(int rank, const int* dims, int place, int* flat) {
  TfLiteTensor t = Tensor(kTfLiteFloat32, rank, dims);
  const tflite::RuntimeShape shape = tflite::GetTensorShape(&t);
  Drop(&t);
  *flat = shape.FlatSize();
  return shape.size_ == rank ? shape.Dims(place) : -1;
}

int strings(int rank, const int* dims, char* text) {
  TfLiteTensor t = Tensor(kTfLiteInt8, rank, dims);
  std::string shape = tflite::GetShapeDebugString(t.dims), whole = tflite::GetTensorDebugString(&t);
  shape += "";           // libstdc++ takes it for one of its own
  whole.append(100, '!');  // and makes it larger
  std::strcpy(text, (shape + whole).c_str());
  Drop(&t);
  return static_cast<int>(shape.size());
}

int broadcast(TfLiteContext* c, int count, const int* ranks, const int* dims, int* out) {
  TfLiteTensor t[3];
  for (int k = 0, at = 0; k < count; at += ranks[k], ++k) t[k] = Tensor(kTfLiteFloat32, ranks[k], dims + at);
  TfLiteIntArray* shape = nullptr;
  const TfLiteStatus status = count == 2 ? tflite::CalculateShapeForBroadcast(c, &t[0], &t[1], &shape)
                                         : tflite::CalculateShapeForBroadcast(c, &t[0], &t[1], &t[2], &shape);
  int rank = -1;
  if (status == kTfLiteOk) {
    rank = shape->size;
    for (int i = 0; i < rank; ++i) out[i] = shape->data[i];
    TfLiteIntArrayFree(shape);
  }
  for (int k = 0; k < count; ++k) Drop(&t[k]);
  return rank;
}

int product(TfLiteContext* c, int a, int b, int d, size_t* wide, int* narrow) {
  const int dims[] = {a, b, d};
  size_t again = 0;
  const TfLiteStatus one = tflite::CheckedShapeProduct(c, dims, 3, "dims", *wide);
  const TfLiteStatus two = tflite::CheckedShapeProduct(c, {a, b, d}, "dims", again);
  const TfLiteStatus three = tflite::CheckedShapeProductToInt(c, {a, b, d}, "dims", *narrow);
  return (one != kTfLiteOk) + 2 * (two != kTfLiteOk || again != *wide) + 4 * (three != kTfLiteOk);
}

int range(TfLiteContext* c, int type, int activation, float scale, int zero_point, int* low, int* high) {
  TfLiteTensor t = Tensor(static_cast<TfLiteType>(type), 0, nullptr);
  t.params.scale = scale;
  t.params.zero_point = zero_point;
  const TfLiteStatus status = tflite::CalculateActivationRangeQuantized(
      c, static_cast<TfLiteFusedActivation>(activation), &t, low, high);
  Drop(&t);
  return status;
}

int convolution(TfLiteContext* c, int type, float in, int channels, const float* filter, float out, float bias,
                int32_t* multiplier, int* shift, int32_t* multipliers, int32_t* shifts) {
  const int dims[] = {channels};
  TfLiteTensor x = Tensor(static_cast<TfLiteType>(type), 0, nullptr), y = x, b = x;
  TfLiteTensor w = Tensor(type == kTfLiteUInt8 ? kTfLiteUInt8 : kTfLiteInt8, 1, dims);
  TfLiteAffineQuantization affine = {TfLiteFloatArrayCreate(channels), nullptr, 0};
  for (int i = 0; i < channels; ++i) affine.scale->data[i] = filter[i];
  x.quantization.type = w.quantization.type = kTfLiteAffineQuantization;
  w.quantization.params = &affine;
  x.params.scale = in;
  w.params.scale = filter[0];
  y.params.scale = out;
  b.params.scale = bias;
  int32_t low, high;
  double real;
  TfLiteStatus status = tflite::PopulateConvolutionQuantizationParams(c, &x, &w, &b, &y, kTfLiteActNone, multiplier,
                                                                      shift, &low, &high, multipliers, shifts, channels);
  if (status == kTfLiteOk && channels == 1) {
    status = tflite::GetQuantizedConvolutionMultipler(c, &x, &w, &b, &y, &real);
  }
  TfLiteFloatArrayFree(affine.scale);
  Drop(&x);
  Drop(&w);
  return status;
}

int sizes(int type, int* bits) {
  *bits = tflite::TfLiteTypeGetSizeBits(static_cast<TfLiteType>(type));
  return tflite::IsMobilePlatform() ? -1 : tflite::TfLiteTypeGetSize(static_cast<TfLiteType>(type));
}

// A node with one input, one left out, one that is variable, one output: what the getters give, as bits.
int getters(TfLiteContext* c) {
  TfLiteTensor tensors[3];
  for (TfLiteTensor& t : tensors) t = Tensor(kTfLiteFloat32, 0, nullptr);
  tensors[1].is_variable = true;
  c->tensors = tensors;
  c->tensors_size = 3;
  TfLiteNode node;
  std::memset(&node, 0, sizeof node);
  node.inputs = TfLiteIntArrayCreate(3);
  node.outputs = TfLiteIntArrayCreate(1);
  node.inputs->data[0] = 0, node.inputs->data[1] = kTfLiteOptionalTensor, node.inputs->data[2] = 1;
  node.outputs->data[0] = 2;
  const TfLiteTensor* safe = nullptr;
  int bits = tflite::GetInput(c, &node, 0) == tensors;
  bits |= (tflite::GetInput(c, &node, 1) == nullptr) << 1;
  bits |= (tflite::GetInput(c, &node, 3) == nullptr) << 2;
  bits |= (tflite::GetVariableInput(c, &node, 0) == nullptr) << 3;
  bits |= (tflite::GetVariableInput(c, &node, 2) == tensors + 1) << 4;
  bits |= (tflite::GetOutput(c, &node, 0) == tensors + 2) << 5;
  bits |= (tflite::GetInputSafe(c, &node, 0, &safe) == kTfLiteOk && safe == tensors) << 6;
  bits |= (tflite::GetInputSafe(c, &node, 1, &safe) == kTfLiteError && safe == nullptr) << 7;
  bits |= tflite::HaveSameShapes(tensors, tensors + 1) << 8;
  bits |= !tflite::HasUnspecifiedDimension(tensors) << 9;
  TfLiteIntArrayFree(node.inputs);
  TfLiteIntArrayFree(node.outputs);
  for (TfLiteTensor& t : tensors) Drop(&t);
  return bits;
}

int shape_from(TfLiteContext* c, int type, int rank, int32_t* values, int* out) {
  const int dims[] = {rank};
  TfLiteTensor t = Tensor(static_cast<TfLiteType>(type), 1, dims);
  t.data.i32 = values;
  TfLiteIntArray* shape = nullptr;
  const TfLiteStatus status = tflite::GetOutputShapeFromInput(c, &t, &shape);
  for (int i = 0; status == kTfLiteOk && i < shape->size; ++i) out[i] = shape->data[i];
  TfLiteIntArrayFree(shape);
  Drop(&t);
  return status;
}
}
