/* tflite::DynamicBuffer, which collects strings for a tensor: for libraries of the official headers, whose own functions
   are in the run time. Those of our headers have it whole (opwright/lite/string_util.h).

   The object is the library's: it was made and is destroyed there, inline, and holds two std::vectors, of all characters
   and of where each string begins. A vector is three addresses in every C++ library. Its memory is malloc's, since that is
   what `operator delete` gives back where nobody has replaced it.

   Until 2022 the places were int32 and a StringRef had an int for its length; since then both are size_t, and a limit
   follows. Which one it is shows in the room for places: it begins with one of them, and only these functions make it
   larger: by an odd number of int32, or by whole size_t. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define DEFINE(Result, name, parameters) \
  OW_EXPORT Result name parameters;      \
  Result name parameters

typedef struct {
  char *begin, *end, *room;
} Vector;

typedef struct {
  Vector text, places;
  size_t limit; /* not there in older headers */
} Buffer;

typedef struct {
  const char* str;
  size_t size; /* of which older headers have the lower half */
} StringRef;

static bool is_old(const Buffer* buffer) { return (buffer->places.room - buffer->places.begin) % 8 == 4; }

static size_t size_of(const Buffer* buffer, const StringRef* string) {
  return is_old(buffer) ? (size_t)(uint32_t)string->size : string->size;
}

/* Append bytes. unit: what the room is a multiple of, and over. */
static bool append(Vector* vector, const void* bytes, size_t count, size_t unit, size_t over) {
  const size_t used = (size_t)(vector->end - vector->begin), room = (size_t)(vector->room - vector->begin);
  if (count > room - used) {
    const size_t wanted = ((used + count) * 2 / unit + 1) * unit + over;
    char* larger = realloc(vector->begin, wanted);
    if (larger == NULL) return false;
    vector->begin = larger;
    vector->end = larger + used;
    vector->room = larger + wanted;
  }
  if (count > 0) memcpy(vector->end, bytes, count);
  vector->end += count;
  return true;
}

/* Where the text ends is where the next string begins. */
static bool end_string(Buffer* buffer) {
  const size_t end = (size_t)(buffer->text.end - buffer->text.begin);
  const int32_t narrow = (int32_t)end;
  return is_old(buffer) ? append(&buffer->places, &narrow, sizeof narrow, 8, 4)
                        : append(&buffer->places, &end, sizeof end, 8, 0);
}

static TfLiteStatus add_part(Buffer* buffer, const char* text, size_t size) {
  const size_t limit = is_old(buffer) ? INT32_MAX : buffer->limit;
  const size_t used = (size_t)(buffer->text.end - buffer->text.begin);
  if (size > limit || used > limit - size) return kTfLiteError;
  return append(&buffer->text, text, size, 1, 0) ? kTfLiteOk : kTfLiteError;
}

static TfLiteStatus add_string(Buffer* buffer, const char* text, size_t size) {
  OW_REQUIRE(buffer != NULL && (text != NULL || size == 0), kTfLiteError);
  TF_LITE_ENSURE_STATUS(add_part(buffer, text, size));
  return end_string(buffer) ? kTfLiteOk : kTfLiteError;
}

static void add_joined(Buffer* buffer, const Vector* strings, const char* separator, size_t separator_size) {
  const StringRef* first = (const StringRef*)strings->begin;
  const size_t count = (size_t)(strings->end - strings->begin) / sizeof *first;
  TfLiteStatus status = kTfLiteOk;
  for (size_t i = 0; i < count && status == kTfLiteOk; ++i) {
    if (i > 0) status = add_part(buffer, separator, separator_size);
    if (status == kTfLiteOk) status = add_part(buffer, first[i].str, size_of(buffer, first + i));
  }
  if (status != kTfLiteOk || !end_string(buffer)) ow_misuse("DynamicBuffer::AddJoinedString", "the strings are too long");
}

static size_t count_of(const Buffer* buffer) {
  return (size_t)(buffer->places.end - buffer->places.begin) / (is_old(buffer) ? sizeof(int32_t) : sizeof(size_t)) - 1;
}

/* Bytes of the strings as a tensor holds them, and writing them there: how many, where each begins, the text. */
static size_t whole_size(const Buffer* buffer) {
  return (count_of(buffer) + 2) * sizeof(int32_t) + (size_t)(buffer->text.end - buffer->text.begin);
}

static void write(const Buffer* buffer, char* to) {
  const size_t count = count_of(buffer), head = (count + 2) * sizeof(int32_t);
  const int32_t number = (int32_t)count;
  memcpy(to, &number, sizeof number);
  for (size_t i = 0; i <= count; ++i) {
    size_t place = 0;
    if (is_old(buffer)) {
      int32_t narrow;
      memcpy(&narrow, buffer->places.begin + i * sizeof narrow, sizeof narrow);
      place = (size_t)narrow;
    } else {
      memcpy(&place, buffer->places.begin + i * sizeof place, sizeof place);
    }
    const int32_t shifted = (int32_t)(head + place);
    memcpy(to + (i + 1) * sizeof shifted, &shifted, sizeof shifted);
  }
  const size_t size = (size_t)(buffer->text.end - buffer->text.begin);
  if (size > 0) memcpy(to + head, buffer->text.begin, size);
}

static void write_to_tensor(const Buffer* buffer, TfLiteTensor* tensor, TfLiteIntArray* shape) {
  const size_t size = whole_size(buffer);
  if (tensor == NULL || size > INT32_MAX) {
    ow_misuse("DynamicBuffer::WriteToTensor", tensor == NULL ? "the tensor is null" : "the strings are too long");
    TfLiteIntArrayFree(shape);
    return;
  }
  if (tensor->allocation_type != kTfLiteDynamic) {
    TfLiteTensorDataFree(tensor);
    tensor->allocation_type = kTfLiteDynamic;
  }
  if (shape != NULL && shape != tensor->dims) {
    TfLiteIntArrayFree(tensor->dims);
    tensor->dims = shape;
  }
  if (TfLiteTensorResizeMaybeCopy(size, tensor, false) != kTfLiteOk) {
    ow_misuse("DynamicBuffer::WriteToTensor", "there is no memory for the strings");
    return;
  }
  write(buffer, tensor->data.raw);
}

#define BUFFER(name) _ZN6tflite13DynamicBuffer##name
DEFINE(TfLiteStatus, BUFFER(9AddStringEPKcm), (Buffer * b, const char* text, size_t size)) {
  return add_string(b, text, size);
}
DEFINE(TfLiteStatus, BUFFER(9AddStringERKNS_9StringRefE), (Buffer * b, const StringRef* s)) {
  return add_string(b, s->str, size_of(b, s));
}
DEFINE(TfLiteStatus, BUFFER(9AddStringERKN4mlir3TFL9StringRefE), (Buffer * b, const StringRef* s)) {
  return add_string(b, s->str, s->size);
}
DEFINE(void, BUFFER(15AddJoinedStringERKSt6vectorINS_9StringRefESaIS2_EEc), (Buffer * b, const Vector* strings, char c)) {
  add_joined(b, strings, &c, 1);
}
DEFINE(void, BUFFER(15AddJoinedStringERKSt6vectorINS_9StringRefESaIS2_EES2_),
       (Buffer * b, const Vector* strings, StringRef separator)) {
  add_joined(b, strings, separator.str, size_of(b, &separator));
}
DEFINE(void, BUFFER(15AddJoinedStringERKSt6vectorIN4mlir3TFL9StringRefESaIS4_EEc),
       (Buffer * b, const Vector* strings, char c)) {
  add_joined(b, strings, &c, 1);
}
DEFINE(void, BUFFER(15AddJoinedStringERKSt6vectorIN4mlir3TFL9StringRefESaIS4_EES4_),
       (Buffer * b, const Vector* strings, StringRef separator)) {
  add_joined(b, strings, separator.str, separator.size);
}
DEFINE(int, BUFFER(13WriteToBufferEPPc), (const Buffer* b, char** to)) {
  OW_REQUIRE(b != NULL && to != NULL, 0);
  const size_t size = whole_size(b);
  *to = size > INT32_MAX ? NULL : malloc(size); /* the caller's to free */
  if (*to == NULL) return 0;
  write(b, *to);
  return (int)size;
}
DEFINE(void, BUFFER(13WriteToTensorEP12TfLiteTensorP14TfLiteIntArray),
       (const Buffer* b, TfLiteTensor* tensor, TfLiteIntArray* shape)) {
  write_to_tensor(b, tensor, shape);
}
DEFINE(void, BUFFER(21WriteToTensorAsVectorEP12TfLiteTensor), (const Buffer* b, TfLiteTensor* tensor)) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  OW_REQUIRE(shape != NULL, );
  shape->data[0] = (int)count_of(b);
  write_to_tensor(b, tensor, shape);
}

/* What these are made of since 2024. */
DEFINE(bool, _ZN4mlir3TFL19SimpleDynamicBuffer9AddStringEPKcm, (Buffer * b, const char* text, size_t size)) {
  return add_string(b, text, size) == kTfLiteOk;
}
DEFINE(int, _ZN4mlir3TFL19SimpleDynamicBuffer13WriteToBufferEPPc, (const Buffer* b, char** to)) {
  return BUFFER(13WriteToBufferEPPc)(b, to);
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

static StringRef string_at(const char* raw, int i) {
  int32_t places[2];
  memcpy(places, raw + (size_t)(i + 1) * sizeof(int32_t), sizeof places);
  return (StringRef){raw + places[0], (size_t)(places[1] - places[0])};
}
static int count_in(const char* raw) {
  int32_t count = 0;
  if (raw != NULL) memcpy(&count, raw, sizeof count);
  return count;
}
DEFINE(StringRef, _ZN4mlir3TFL9GetStringEPKvi, (const void* raw, int i)) { return string_at(raw, i); }
DEFINE(int, _ZN4mlir3TFL14GetStringCountEPKv, (const void* raw)) { return count_in(raw); }
DEFINE(StringRef, _ZN6tflite9GetStringEPKvi, (const void* raw, int i)) { return string_at(raw, i); }
DEFINE(int, _ZN6tflite14GetStringCountEPKv, (const void* raw)) { return count_in(raw); }
DEFINE(StringRef, _ZN6tflite9GetStringEPK12TfLiteTensori, (const TfLiteTensor* t, int i)) {
  return string_at(t->data.raw, i);
}
DEFINE(int, _ZN6tflite14GetStringCountEPK12TfLiteTensor, (const TfLiteTensor* t)) { return count_in(t->data.raw); }
DEFINE(StringRef, _ZN6tflite9GetStringEPKci, (const char* raw, int i)) { return string_at(raw, i); }
DEFINE(int, _ZN6tflite14GetStringCountEPKc, (const char* raw)) { return count_in(raw); }
