/* Memory that is counted, element types, arrays that know their length. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

/* --- memory -------------------------------------------------------------------------------------------------------- */

static _Atomic int64_t blocks;

static void* counted(void* block) {
  if (block != NULL) atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
  return block;
}

void* ow_alloc(size_t bytes) { return counted(malloc(bytes)); }
void* ow_zeroed(size_t bytes) { return counted(calloc(1, bytes)); }
void* ow_realloc(void* block, size_t bytes) { return block == NULL ? ow_alloc(bytes) : realloc(block, bytes); }

void ow_release(void* block) {
  if (block != NULL) atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
  free(block);
}

int64_t ow_blocks(void) { return atomic_load_explicit(&blocks, memory_order_relaxed); }

size_t ow_size_of(int what) {
  static const size_t sizes[] = {sizeof(OwHost), sizeof(TfLiteContext), sizeof(TfLiteTensor), sizeof(TfLiteNode),
                                 sizeof(TfLiteRegistration)};
  return what >= 0 && (size_t)what < sizeof sizes / sizeof *sizes ? sizes[what] : 0;
}

/* --- element types ------------------------------------------------------------------------------------------------- */

static const struct {
  const char* name;
  int bits;
} TYPES[] = {
    [kTfLiteNoType] = {"NOTYPE", 0},
    [kTfLiteFloat32] = {"FLOAT32", 32},
    [kTfLiteInt32] = {"INT32", 32},
    [kTfLiteUInt8] = {"UINT8", 8},
    [kTfLiteInt64] = {"INT64", 64},
    [kTfLiteString] = {"STRING", 0},
    [kTfLiteBool] = {"BOOL", 8},
    [kTfLiteInt16] = {"INT16", 16},
    [kTfLiteComplex64] = {"COMPLEX64", 64},
    [kTfLiteInt8] = {"INT8", 8},
    [kTfLiteFloat16] = {"FLOAT16", 16},
    [kTfLiteFloat64] = {"FLOAT64", 64},
    [kTfLiteComplex128] = {"COMPLEX128", 128},
    [kTfLiteUInt64] = {"UINT64", 64},
    [kTfLiteResource] = {"RESOURCE", 0},
    [kTfLiteVariant] = {"VARIANT", 0},
    [kTfLiteUInt32] = {"UINT32", 32},
    [kTfLiteUInt16] = {"UINT16", 16},
    [kTfLiteInt4] = {"INT4", 4},
    [kTfLiteBFloat16] = {"BFLOAT16", 16},
    [kTfLiteInt2] = {"INT2", 2},
    [kTfLiteUInt4] = {"UINT4", 4},
    [kTfLiteFloat8E4M3FN] = {"FLOAT8E4M3FN", 8},
    [kTfLiteFloat8E5M2] = {"FLOAT8E5M2", 8},
};

static bool known(TfLiteType type) { return (unsigned)type < sizeof TYPES / sizeof *TYPES; }

const char* TfLiteTypeGetName(TfLiteType type) { return known(type) ? TYPES[type].name : "Unknown type"; }

int ow_bits(TfLiteType type) { return known(type) ? TYPES[type].bits : 0; }

int ow_bytes_of(TfLiteType type, const TfLiteIntArray* shape, size_t* bytes) {
  size_t bits = (size_t)ow_bits(type), count = 1;
  if (bits == 0 || shape == NULL || shape->size < 0) return 0;
  for (int i = 0; i < shape->size; ++i) {
    size_t size = (size_t)shape->data[i];
    if (shape->data[i] < 0 || (size != 0 && count > (SIZE_MAX / 256) / size)) return 0;
    count *= size;
  }
  *bytes = (count * bits + 7) / 8;
  return 1;
}

/* --- arrays -------------------------------------------------------------------------------------------------------- */

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return size < 0 ? 0 : offsetof(TfLiteIntArray, data) + (size_t)size * sizeof(int);
}

TfLiteIntArray* TfLiteIntArrayCreate(int size) {
  OW_REQUIRE(size >= 0, NULL);
  TfLiteIntArray* array = ow_alloc(TfLiteIntArrayGetSizeInBytes(size));
  if (array != NULL) array->size = size;
  return array;
}

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  return a != NULL && b != NULL && TfLiteIntArrayEqualsArray(a, b->size, b->data);
}

int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]) {
  if (a == NULL) return b_size == 0;
  if (a->size != b_size) return 0;
  return b_size <= 0 || (b_data != NULL && memcmp(a->data, b_data, (size_t)b_size * sizeof(int)) == 0);
}

TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src) {
  if (src == NULL) return NULL;
  TfLiteIntArray* copy = TfLiteIntArrayCreate(src->size);
  if (copy != NULL) memcpy(copy->data, src->data, (size_t)src->size * sizeof(int));
  return copy;
}

void TfLiteIntArrayFree(TfLiteIntArray* a) { ow_release(a); }

int TfLiteFloatArrayGetSizeInBytes(int size) {
  size_t bytes = size < 0 ? 0 : offsetof(TfLiteFloatArray, data) + (size_t)size * sizeof(float);
  return bytes > INT_MAX ? 0 : (int)bytes;
}

TfLiteFloatArray* TfLiteFloatArrayCreate(int size) {
  OW_REQUIRE(size >= 0, NULL);
  TfLiteFloatArray* array = ow_alloc(offsetof(TfLiteFloatArray, data) + (size_t)size * sizeof(float));
  if (array != NULL) array->size = size;
  return array;
}

TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src) {
  if (src == NULL) return NULL;
  TfLiteFloatArray* copy = TfLiteFloatArrayCreate(src->size);
  if (copy != NULL) memcpy(copy->data, src->data, (size_t)src->size * sizeof(float));
  return copy;
}

void TfLiteFloatArrayFree(TfLiteFloatArray* a) { ow_release(a); }
