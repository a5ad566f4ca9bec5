// Functions of a library that C++ exceptions leave: one operator, told by its options what to throw and where.
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "tensorflow/lite/c/common.h"

namespace {

int alive = 0; /* objects that an exception must end on its way */

struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
};

struct Other {
  virtual ~Other() {}
  int more = 3;
};
struct Mine : Other, std::runtime_error { /* std::exception is not at its beginning */
  Mine() : std::runtime_error("of several bases") {}
};
struct NoException {};

void Throw(char what) {
  Counted here;
  switch (what) {
    case 'r':
      throw std::runtime_error("thrown");
    case 'l':
      throw std::out_of_range(std::string(600, 'x'));
    case 'm':
      throw Mine();
    case 'n':
      throw NoException();
    case 'i':
      throw 42;
    case 'b':
      throw std::bad_alloc();
    case 'c':
      try {
        throw std::logic_error("a copy");
      } catch (...) {
        std::rethrow_exception(std::current_exception());
      }
    case 'a':
      try {
        throw std::logic_error("again");
      } catch (...) {
        throw;
      }
  }
}

char When(const TfLiteNode* node) { return static_cast<const char*>(node->custom_initial_data)[0]; }
char What(const TfLiteNode* node) { return static_cast<const char*>(node->custom_initial_data)[1]; }

void* Init(TfLiteContext*, const char* buffer, size_t length) {
  if (length > 1 && buffer[0] == 'i') Throw(buffer[1]);
  return new char(length > 0 ? buffer[0] : 0);
}
void Free(TfLiteContext*, void* data) {
  const char when = *static_cast<char*>(data);
  delete static_cast<char*>(data);
  if (when == 'f') Throw('r');
}
TfLiteStatus Prepare(TfLiteContext*, TfLiteNode* node) {
  if (When(node) == 'p') Throw(What(node));
  return kTfLiteOk;
}
TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* y = &context->tensors[node->outputs->data[0]];
  const TfLiteTensor* x = &context->tensors[node->inputs->data[0]];
  if (When(node) == 'v' && x->data.f[0] < 0) Throw(What(node));
  for (size_t i = 0; i < y->bytes / sizeof(float); ++i) y->data.f[i] = 2 * x->data.f[i];
  return kTfLiteOk;
}

}  // namespace

extern "C" {
TfLiteRegistration* Register_THROWS() {
  static TfLiteRegistration r = {Init, Free, Prepare, Invoke, nullptr, 0, nullptr, 1, nullptr, nullptr, 0};
  return &r;
}
TfLiteRegistration* ThrowingRegistration() { throw std::runtime_error("no registration today"); }
TfLiteRegistration ThrowingByValueRegistration() { throw NoException(); }
int objects_alive() { return alive; }
int exceptions_on_their_way() { return std::uncaught_exception() ? 1 : 0; }
}
