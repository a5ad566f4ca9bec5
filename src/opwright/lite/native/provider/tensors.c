/* Tensors of the classic interface. */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { SPARE_BYTES = 16 }; /* behind memory on the heap, which kernels on vectors may read */

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
  if (tensor->data.data == NULL || num_bytes > tensor->bytes || is_lent(tensor)) {
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
