/* Arrays and tensors of the classic interface, and element types. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { SPARE_BYTES = 16 }; /* behind memory on the heap, which kernels on vectors may read */

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

/* --- a tensor's parts ---------------------------------------------------------------------------------------------- */

static bool on_heap(const TfLiteTensor* t) {
  return t->allocation_type == kTfLiteDynamic || t->allocation_type == kTfLitePersistentRo;
}

/* Memory that stands in allocation as well is the interpreter's: it is never freed here, and left for other memory. */
static bool is_lent(const TfLiteTensor* t) { return t->data.data != NULL && t->data.data == t->allocation; }

/* A caller's allocator is told the bytes it was asked for, spare ones included, and the alignment of malloc. */
static void* heap_again(const TfLiteAllocator* allocator, void* block, size_t old_bytes, size_t bytes) {
  if (allocator == NULL || allocator->reallocate == NULL) return ow_realloc(block, bytes);
  if (block == NULL) return allocator->allocate(allocator->data, bytes, _Alignof(max_align_t));
  return allocator->reallocate(allocator->data, block, old_bytes, bytes, _Alignof(max_align_t));
}

void TfLiteTensorDataFreeWithAllocator(TfLiteTensor* t, TfLiteAllocator* allocator) {
  OW_REQUIRE(t != NULL, );
  if (on_heap(t) && t->data.data != NULL && !is_lent(t)) {
    if (allocator != NULL && allocator->deallocate != NULL) {
      allocator->deallocate(allocator->data, t->data.data, t->bytes + SPARE_BYTES, _Alignof(max_align_t));
    } else {
      ow_release(t->data.data);
    }
  }
  t->data.data = NULL;
}

void TfLiteTensorDataFree(TfLiteTensor* t) { TfLiteTensorDataFreeWithAllocator(t, NULL); }

void TfLiteQuantizationFree(TfLiteQuantization* quantization) {
  OW_REQUIRE(quantization != NULL, );
  if (quantization->params != NULL) {
    if (quantization->type == kTfLiteAffineQuantization) {
      TfLiteAffineQuantization* affine = quantization->params;
      TfLiteFloatArrayFree(affine->scale);
      TfLiteIntArrayFree(affine->zero_point);
    } else if (quantization->type == kTfLiteMultiAxisQuantization) {
      TfLiteIntArrayFree(((TfLiteMultiAxisQuantization*)quantization->params)->quantized_dimensions);
    }
    ow_release(quantization->params);
  }
  quantization->params = NULL;
  quantization->type = kTfLiteNoQuantization;
}

void TfLiteSparsityFree(TfLiteSparsity* sparsity) {
  if (sparsity == NULL) return;
  TfLiteIntArrayFree(sparsity->traversal_order);
  TfLiteIntArrayFree(sparsity->block_map);
  for (int i = 0; sparsity->dim_metadata != NULL && i < sparsity->dim_metadata_size; ++i) {
    TfLiteDimensionMetadata* dimension = sparsity->dim_metadata + i;
    if (dimension->format == kTfLiteDimSparseCSR) {
      TfLiteIntArrayFree(dimension->array_segments);
      TfLiteIntArrayFree(dimension->array_indices);
    }
  }
  ow_release(sparsity->dim_metadata);
  ow_release(sparsity);
}

/* --- whole tensors ------------------------------------------------------------------------------------------------- */

void TfLiteTensorFree(TfLiteTensor* t) {
  OW_REQUIRE(t != NULL, );
  TfLiteTensorDataFree(t);
  TfLiteIntArrayFree(t->dims);
  t->dims = NULL;
  ow_release((void*)t->dims_signature);
  t->dims_signature = NULL;
  TfLiteQuantizationFree(&t->quantization);
  TfLiteSparsityFree(t->sparsity);
  t->sparsity = NULL;
}

void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims, TfLiteQuantizationParams quantization,
                       char* buffer, size_t size, TfLiteAllocationType allocation_type, const void* allocation,
                       bool is_variable, TfLiteTensor* tensor) {
  OW_REQUIRE(tensor != NULL, );
  TfLiteTensorFree(tensor);
  tensor->type = type;
  tensor->name = name;
  tensor->dims = dims;
  tensor->params = quantization;
  tensor->data.raw = buffer;
  tensor->bytes = size;
  tensor->allocation_type = allocation_type;
  tensor->allocation = allocation;
  tensor->is_variable = is_variable;
  if (ow_here != NULL) ow_here->resized++;
}

TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst) {
  if (src == NULL || dst == NULL || src == dst) return kTfLiteOk;
  if (src->bytes != dst->bytes) return kTfLiteError;
  OW_REQUIRE(src->bytes == 0 || (src->data.data != NULL && dst->data.data != NULL), kTfLiteError);
  TfLiteIntArray* dims = TfLiteIntArrayCopy(src->dims);
  if (dims == NULL && src->dims != NULL) return kTfLiteError;
  TfLiteIntArrayFree(dst->dims);
  dst->dims = dims;
  if (src->bytes != 0) memmove(dst->data.data, src->data.data, src->bytes);
  dst->buffer_handle = src->buffer_handle;
  dst->data_is_stale = src->data_is_stale;
  dst->delegate = src->delegate;
  return kTfLiteOk;
}

TfLiteTensor TfLiteTensorClone(TfLiteTensor src) {
  TfLiteTensor copy = src;
  copy.dims = TfLiteIntArrayCopy(src.dims);
  copy.dims_signature = TfLiteIntArrayCopy(src.dims_signature);
  copy.sparsity = NULL;
  copy.data.data = NULL;
  copy.allocation = NULL;
  if (src.data.data != NULL) {
    copy.data.data = ow_alloc(src.bytes + SPARE_BYTES);
    if (copy.data.data != NULL) memcpy(copy.data.data, src.data.data, src.bytes);
    copy.allocation_type = kTfLiteDynamic;
  }
  copy.quantization.type = kTfLiteNoQuantization;
  copy.quantization.params = NULL;
  if (src.quantization.type == kTfLiteAffineQuantization && src.quantization.params != NULL) {
    const TfLiteAffineQuantization* affine = src.quantization.params;
    TfLiteAffineQuantization* own = ow_zeroed(sizeof *own);
    if (own != NULL) {
      own->scale = TfLiteFloatArrayCopy(affine->scale);
      own->zero_point = TfLiteIntArrayCopy(affine->zero_point);
      own->quantized_dimension = affine->quantized_dimension;
      copy.quantization.type = kTfLiteAffineQuantization;
      copy.quantization.params = own;
    }
  }
  return copy;
}

TfLiteStatus TfLiteTensorResizeMaybeCopyWithAllocator(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data,
                                                      TfLiteAllocator* allocator) {
  OW_REQUIRE(tensor != NULL, kTfLiteError);
  if (!on_heap(tensor)) return kTfLiteOk;
  if (num_bytes > SIZE_MAX - SPARE_BYTES) return kTfLiteError;
  if (tensor->data.data == NULL || num_bytes > tensor->bytes) {
    if (!preserve_data) TfLiteTensorDataFreeWithAllocator(tensor, allocator); /* nothing to copy: no need to move it */
    const void* lent = is_lent(tensor) ? tensor->data.data : NULL;
    void* block = heap_again(allocator, lent == NULL ? tensor->data.data : NULL, tensor->bytes + SPARE_BYTES,
                             num_bytes + SPARE_BYTES);
    if (block == NULL) return kTfLiteError;
    if (lent != NULL) memcpy(block, lent, tensor->bytes < num_bytes ? tensor->bytes : num_bytes);
    tensor->data.data = block;
  }
  tensor->bytes = num_bytes;
  if (ow_here != NULL) ow_here->resized++;
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data) {
  return TfLiteTensorResizeMaybeCopyWithAllocator(num_bytes, tensor, preserve_data, NULL);
}

TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor) {
  return TfLiteTensorResizeMaybeCopyWithAllocator(num_bytes, tensor, true, NULL);
}

TfLiteStatus TfLiteTensorReallocWithAllocator(size_t num_bytes, TfLiteTensor* tensor, TfLiteAllocator* allocator) {
  return TfLiteTensorResizeMaybeCopyWithAllocator(num_bytes, tensor, true, allocator);
}

const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t) {
  OW_REQUIRE(t != NULL, NULL);
  return t->dims_signature != NULL && t->dims_signature->size > 0 ? t->dims_signature : t->dims;
}

/* --- what the kind of a tensor's memory says ----------------------------------------------------------------------- */

static const struct {
  TfLiteAllocationStrategy strategy;
  TfLiteRunStability address, values;
  TfLiteRunStep values_known, shape_known;
} KINDS[] = {
#define KIND(strategy, address, values, known, shape)                                             \
  {kTfLiteAllocationStrategy##strategy, kTfLiteRunStability##address, kTfLiteRunStability##values, \
   kTfLiteRunStep##known, kTfLiteRunStep##shape}
    [kTfLiteMemNone] = KIND(None, AcrossRuns, AcrossRuns, Init, Init),
    [kTfLiteMmapRo] = KIND(MMap, AcrossRuns, AcrossRuns, Init, Init),
    [kTfLiteArenaRw] = KIND(Arena, Unstable, SingleRun, Eval, Prepare),
    [kTfLiteArenaRwPersistent] = KIND(Arena, Unstable, SingleRun, Eval, Prepare),
    [kTfLiteDynamic] = KIND(Malloc, SingleRun, SingleRun, Eval, Eval),
    [kTfLitePersistentRo] = KIND(Malloc, SingleRun, SingleRun, Prepare, Prepare),
    [kTfLiteCustom] = KIND(Unknown, Unknown, Unknown, Unknown, Unknown),
    [kTfLiteVariantObject] = KIND(New, SingleRun, SingleRun, Eval, Eval),
    [kTfLiteNonCpu] = KIND(Unknown, Unknown, Unknown, Unknown, Unknown),
#undef KIND
};

#define OF_KIND(Type, Name, field)                                                        \
  Type TfLiteTensorGet##Name(const TfLiteTensor* t) {                                     \
    OW_REQUIRE(t != NULL, (Type)0);                                                       \
    size_t kind = (size_t)t->allocation_type;                                             \
    return kind < sizeof KINDS / sizeof *KINDS ? KINDS[kind].field : (Type)0;             \
  }
OF_KIND(TfLiteAllocationStrategy, AllocationStrategy, strategy)
OF_KIND(TfLiteRunStability, BufferAddressStability, address)
OF_KIND(TfLiteRunStability, DataStability, values)
OF_KIND(TfLiteRunStep, DataKnownStep, values_known)
OF_KIND(TfLiteRunStep, ShapeKnownStep, shape_known)

/* --- delegates and failure ----------------------------------------------------------------------------------------- */

TfLiteDelegate TfLiteDelegateCreate(void) {
  TfLiteDelegate delegate;
  memset(&delegate, 0, sizeof delegate);
  return delegate;
}

void* TfLiteKernelInitFailed(void) { return (void*)-1; }
