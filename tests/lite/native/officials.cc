// Classes of the official run time as its headers declare them, whose functions a library expects of the run time or has
// linked in: strings for a tensor, and what kernels share their threads by.
// OLD: as headers until 2022 have them. MLIR: as headers since 2024 have them.
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/lite/c/common.h"

#ifdef MLIR
namespace mlir {
namespace TFL {
struct StringRef {
  const char* str;
  size_t len;
};
class SimpleDynamicBuffer {
 public:
  explicit SimpleDynamicBuffer(size_t max_length) : offset_({0}), max_length_(max_length) {}
  bool AddString(const char* str, size_t len);
  int WriteToBuffer(char** buffer);

 protected:
  std::vector<char> data_;
  std::vector<size_t> offset_;
  const size_t max_length_;
};
StringRef GetString(const void* raw_buffer, int string_index);
int GetStringCount(const void* raw_buffer);
}  // namespace TFL
}  // namespace mlir
#endif

namespace tflite {

#ifdef MLIR
using ::mlir::TFL::GetString;
using ::mlir::TFL::GetStringCount;
using ::mlir::TFL::StringRef;
class DynamicBuffer : public mlir::TFL::SimpleDynamicBuffer {
 public:
  explicit DynamicBuffer(size_t max_length = std::numeric_limits<int>::max())
      : mlir::TFL::SimpleDynamicBuffer(max_length) {}
  TfLiteStatus AddString(const StringRef& string);
  TfLiteStatus AddString(const char* str, size_t len);
  void AddJoinedString(const std::vector<StringRef>& strings, char separator);
  void AddJoinedString(const std::vector<StringRef>& strings, StringRef separator);
  using mlir::TFL::SimpleDynamicBuffer::WriteToBuffer;
  void WriteToTensor(TfLiteTensor* tensor, TfLiteIntArray* new_shape);
  void WriteToTensorAsVector(TfLiteTensor* tensor);
};
#else
#ifdef OLD
typedef int Length;
#else
typedef size_t Length;
#endif
struct StringRef {
  const char* str;
  Length len;
};
class DynamicBuffer {
 public:
#ifdef OLD
  DynamicBuffer() : offset_({0}) {}
#else
  explicit DynamicBuffer(size_t max_length = std::numeric_limits<int>::max())
      : offset_({0}), max_length_(max_length) {}
#endif
  TfLiteStatus AddString(const StringRef& string);
  TfLiteStatus AddString(const char* str, size_t len);
  void AddJoinedString(const std::vector<StringRef>& strings, char separator);
  void AddJoinedString(const std::vector<StringRef>& strings, StringRef separator);
  int WriteToBuffer(char** buffer);
  void WriteToTensor(TfLiteTensor* tensor, TfLiteIntArray* new_shape);
  void WriteToTensorAsVector(TfLiteTensor* tensor);

 private:
  std::vector<char> data_;
#ifdef OLD
  std::vector<int32_t> offset_;
#else
  std::vector<size_t> offset_;
  const size_t max_length_;
#endif
};
StringRef GetString(const TfLiteTensor* tensor, int string_index);
int GetStringCount(const TfLiteTensor* tensor);
#endif

class TfLiteInternalBackendContext {
 public:
  virtual ~TfLiteInternalBackendContext() {}
  virtual void SetMaxNumThreads(int max_num_threads) = 0;
  virtual void ClearCaches() = 0;
};

class ExternalCpuBackendContext : public TfLiteExternalContext {
 public:
  void set_internal_backend_context(std::unique_ptr<TfLiteInternalBackendContext> context) {
    internal_ = std::move(context);
  }
  TfLiteInternalBackendContext* internal_backend_context() const { return internal_.get(); }

 private:
  std::unique_ptr<TfLiteInternalBackendContext> internal_;
};

}  // namespace tflite

namespace {

int made = 0, ended = 0;

class Backend : public tflite::TfLiteInternalBackendContext {
 public:
  Backend() { ++made; }
  ~Backend() override { ++ended; }
  void SetMaxNumThreads(int count) override { threads = count; }
  void ClearCaches() override {}
  static Backend* From(TfLiteContext* context) {
    auto* external = static_cast<tflite::ExternalCpuBackendContext*>(
        context->GetExternalContext(context, kTfLiteCpuBackendContext));
    if (external == nullptr || external->type != kTfLiteCpuBackendContext) return nullptr;
    auto* backend = static_cast<Backend*>(external->internal_backend_context());
    if (backend == nullptr) {
      backend = new Backend();
      backend->SetMaxNumThreads(context->recommended_num_threads);
      external->set_internal_backend_context(std::unique_ptr<tflite::TfLiteInternalBackendContext>(backend));
    }
    return backend;
  }
  int threads = 0, calls = 0;
};

/* y[0]: threads; y[1]: how often nodes of this library have asked in this interpreter. */
TfLiteStatus InvokeThreads(TfLiteContext* context, TfLiteNode* node) {
  Backend* backend = Backend::From(context);
  if (backend == nullptr) return kTfLiteError;
  float* y = context->tensors[node->outputs->data[0]].data.f;
  y[0] = static_cast<float>(backend->threads);
  y[1] = static_cast<float>(++backend->calls);
  return kTfLiteOk;
}

/* Strings: each of x, the same again, all of them joined by a comma and by " & ". */
TfLiteStatus InvokeStrings(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = &context->tensors[node->inputs->data[0]];
  tflite::DynamicBuffer buffer;
  std::vector<tflite::StringRef> all;
#ifdef MLIR
  const int count = tflite::GetStringCount(x->data.raw);
  for (int i = 0; i < count; ++i) all.push_back(tflite::GetString(x->data.raw, i));
#else
  const int count = tflite::GetStringCount(x);
  for (int i = 0; i < count; ++i) all.push_back(tflite::GetString(x, i));
#endif
  for (const auto& s : all) {
    if (buffer.AddString(s) != kTfLiteOk) return kTfLiteError;
    if (buffer.AddString(s.str, static_cast<size_t>(s.len)) != kTfLiteOk) return kTfLiteError;
  }
  buffer.AddJoinedString(all, ',');
  buffer.AddJoinedString(all, tflite::StringRef{" & ", 3});
  buffer.WriteToTensorAsVector(&context->tensors[node->outputs->data[0]]);
#ifndef OLD
  tflite::DynamicBuffer small(3);
  if (small.AddString("abc", 3) != kTfLiteOk || small.AddString("d", 1) != kTfLiteError) return kTfLiteError;
#endif
  return kTfLiteOk;
}

}  // namespace

extern "C" {
TfLiteRegistration* Register_THREADS() {
  static TfLiteRegistration r{};
  r.invoke = InvokeThreads;
  return &r;
}
TfLiteRegistration* Register_STRINGS() {
  static TfLiteRegistration r{};
  r.invoke = InvokeStrings;
  return &r;
}
int backends_made() { return made; }
int backends_ended() { return ended; }
/* The bytes of a tensor of strings, and how many; the caller frees them. */
int strings_as_bytes(char** out) {
  tflite::DynamicBuffer buffer;
  for (int i = 0; i < 100; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    if (buffer.AddString(&letter, static_cast<size_t>(i % 2)) != kTfLiteOk) return 0;
  }
  return buffer.WriteToBuffer(out);
}
}
