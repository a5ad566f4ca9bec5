/* Tensors of the opaque interface, their builders, and the classic functions of the same kind; delegates. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define TENSOR(opaque) ((TfLiteTensor*)(opaque))

/* --- reading: once for opaque and once for classic tensors ---------------------------------------------------------- */

#define READ(Result, Name, Tensor, value, otherwise) \
  Result Name(const Tensor* t) {                     \
    OW_REQUIRE(t != NULL, otherwise);                \
    return value;                                    \
  }

static const TfLiteQuantizationParams NO_PARAMS;
static const TfLiteQuantization NO_QUANTIZATION;

READ(TfLiteType, TfLiteOpaqueTensorType, TfLiteOpaqueTensor, TENSOR(t)->type, kTfLiteNoType)
READ(TfLiteType, TfLiteTensorType, TfLiteTensor, t->type, kTfLiteNoType)
READ(int32_t, TfLiteOpaqueTensorNumDims, TfLiteOpaqueTensor, TENSOR(t)->dims == NULL ? -1 : TENSOR(t)->dims->size, -1)
READ(int32_t, TfLiteTensorNumDims, TfLiteTensor, t->dims == NULL ? -1 : t->dims->size, -1)
READ(size_t, TfLiteOpaqueTensorByteSize, TfLiteOpaqueTensor, TENSOR(t)->bytes, 0)
READ(size_t, TfLiteTensorByteSize, TfLiteTensor, t->bytes, 0)
READ(const char*, TfLiteOpaqueTensorName, TfLiteOpaqueTensor, TENSOR(t)->name, NULL)
READ(const char*, TfLiteTensorName, TfLiteTensor, t->name, NULL)
READ(TfLiteQuantizationParams, TfLiteOpaqueTensorGetQuantizationParams, TfLiteOpaqueTensor, TENSOR(t)->params, NO_PARAMS)
READ(TfLiteQuantizationParams, TfLiteTensorQuantizationParams, TfLiteTensor, t->params, NO_PARAMS)
READ(TfLiteQuantization, TfLiteOpaqueTensorGetQuantization, TfLiteOpaqueTensor, TENSOR(t)->quantization, NO_QUANTIZATION)
READ(int, TfLiteOpaqueTensorIsVariable, TfLiteOpaqueTensor, TENSOR(t)->is_variable ? 1 : 0, 0)
READ(TfLiteAllocationType, TfLiteOpaqueTensorGetAllocationType, TfLiteOpaqueTensor, TENSOR(t)->allocation_type,
     kTfLiteMemNone)

void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* t) { return t == NULL ? NULL : TENSOR(t)->data.data; }
void* TfLiteTensorData(const TfLiteTensor* t) { return t == NULL ? NULL : t->data.data; }

#define OF_KIND(Type, Name)                                          \
  Type TfLiteOpaqueTensorGet##Name(const TfLiteOpaqueTensor* t) {    \
    return TfLiteTensorGet##Name(TENSOR(t));                         \
  }
OF_KIND(TfLiteAllocationStrategy, AllocationStrategy)
OF_KIND(TfLiteRunStability, BufferAddressStability)
OF_KIND(TfLiteRunStability, DataStability)
OF_KIND(TfLiteRunStep, DataKnownStep)
OF_KIND(TfLiteRunStep, ShapeKnownStep)

int32_t TfLiteTensorDim(const TfLiteTensor* t, int32_t index) {
  OW_REQUIRE(t != NULL && t->dims != NULL, -1);
  OW_REQUIRE_INDEX(index, t->dims->size, -1);
  return t->dims->data[index];
}

int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* t, int32_t index) { return TfLiteTensorDim(TENSOR(t), index); }

TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* t, int32_t* count) {
  OW_REQUIRE(t != NULL && count != NULL, kTfLiteError);
  *count = TENSOR(t)->dims_signature == NULL ? -1 : TENSOR(t)->dims_signature->size;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* t, int32_t index, int32_t* length) {
  OW_REQUIRE(t != NULL && length != NULL, kTfLiteError);
  const TfLiteIntArray* signature = TfLiteTensorGetDimsSignature(TENSOR(t));
  OW_REQUIRE(signature != NULL, kTfLiteError);
  OW_REQUIRE_INDEX(index, signature->size, kTfLiteError);
  *length = signature->data[index];
  return kTfLiteOk;
}

/* --- copying ------------------------------------------------------------------------------------------------------- */

TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* t, const void* data, size_t bytes) {
  OW_REQUIRE(t != NULL && (data != NULL || bytes == 0), kTfLiteError);
  if (t->bytes != bytes) return kTfLiteError;
  OW_REQUIRE(t->data.data != NULL || bytes == 0, kTfLiteError);
  if (bytes != 0) memcpy(t->data.data, data, bytes);
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* t, void* data, size_t bytes) {
  OW_REQUIRE(t != NULL && (data != NULL || bytes == 0), kTfLiteError);
  if (t->bytes != bytes) return kTfLiteError;
  OW_REQUIRE(t->data.data != NULL || bytes == 0, kTfLiteError);
  if (bytes != 0) memcpy(data, t->data.data, bytes);
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* t, const void* data, size_t bytes) {
  return TfLiteTensorCopyFromBuffer(TENSOR(t), data, bytes);
}

TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* t, void* data, size_t bytes) {
  return TfLiteTensorCopyToBuffer(TENSOR(t), data, bytes);
}

/* --- strings: their number, where each begins and the last ends, all of 32 bits; then their bytes ------------------- */

/* The number of strings, after looking whether all that the buffer says lies in it; -1 where not. */
static int count_strings(const TfLiteTensor* t, const int32_t** offsets) {
  if (t == NULL || t->type != kTfLiteString || t->data.data == NULL || t->bytes < sizeof(int32_t)) return -1;
  const int32_t* head = t->data.i32;
  int32_t count = head[0];
  if (count < 0 || (size_t)count + 2 > t->bytes / sizeof(int32_t)) return -1;
  int64_t before = ((int64_t)count + 2) * (int64_t)sizeof(int32_t);
  for (int32_t i = 0; i <= count; ++i) {
    if (head[1 + i] < before || (size_t)head[1 + i] > t->bytes) return -1;
    before = head[1 + i];
  }
  *offsets = head + 1;
  return count;
}

int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* t) {
  const int32_t* offsets;
  return count_strings(TENSOR(t), &offsets);
}

TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* t, int index, const char** str, int* length) {
  OW_REQUIRE(t != NULL && str != NULL && length != NULL, kTfLiteError);
  const int32_t* offsets;
  int count = count_strings(TENSOR(t), &offsets);
  OW_REQUIRE_INDEX(index, count < 0 ? 0 : count, kTfLiteError);
  *str = TENSOR(t)->data.raw_const + offsets[index];
  *length = offsets[index + 1] - offsets[index];
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* opaque, const char* const* strings, int count,
                                            const int* lengths) {
  TfLiteTensor* t = TENSOR(opaque);
  OW_REQUIRE(t != NULL && count >= 0 && (count == 0 || (strings != NULL && lengths != NULL)), kTfLiteError);
  OW_REQUIRE(t->type == kTfLiteString && t->allocation_type != kTfLiteMmapRo, kTfLiteError);
  int64_t bytes = ((int64_t)count + 2) * (int64_t)sizeof(int32_t);
  for (int i = 0; i < count; ++i) {
    OW_REQUIRE(lengths[i] >= 0 && (lengths[i] == 0 || strings[i] != NULL), kTfLiteError);
    bytes += lengths[i];
  }
  OW_REQUIRE(bytes <= INT32_MAX, kTfLiteError);
  TfLiteIntArray* dims = TfLiteIntArrayCreate(1);
  int32_t* buffer = ow_alloc((size_t)bytes); /* before the old one goes: strings may lie in it */
  if (dims == NULL || buffer == NULL) {
    TfLiteIntArrayFree(dims);
    ow_release(buffer);
    return kTfLiteError;
  }
  int32_t end = (count + 2) * (int32_t)sizeof(int32_t);
  buffer[0] = count;
  for (int i = 0; i < count; ++i) {
    buffer[1 + i] = end;
    if (lengths[i] > 0) memcpy((char*)buffer + end, strings[i], (size_t)lengths[i]);
    end += lengths[i];
  }
  buffer[1 + count] = end;
  TfLiteTensorDataFree(t);
  TfLiteIntArrayFree(t->dims);
  dims->data[0] = count;
  t->dims = dims;
  t->data.i32 = buffer;
  t->bytes = (size_t)bytes;
  t->allocation_type = kTfLiteDynamic;
  if (ow_here != NULL) ow_here->resized++;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* t, const char* str, int length) {
  return TfLiteOpaqueTensorWriteStrings(t, &str, 1, &length);
}

/* --- the kind of memory -------------------------------------------------------------------------------------------- */

void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* t) {
  OW_REQUIRE(t != NULL, );
  if (TENSOR(t)->allocation_type == kTfLiteDynamic) return;
  TfLiteTensorDataFree(TENSOR(t));
  TENSOR(t)->allocation_type = kTfLiteDynamic;
}

void TfLiteOpaqueTensorSetNonCpuAllocation(TfLiteOpaqueTensor* t) {
  OW_REQUIRE(t != NULL, );
  TfLiteTensorDataFree(TENSOR(t));
  TENSOR(t)->allocation_type = kTfLiteNonCpu;
}

/* --- builders ------------------------------------------------------------------------------------------------------ */

struct TfLiteOpaqueTensorBuilder {
  TfLiteType type;
  void* data;
  TfLiteAllocationType allocation_type;
  TfLiteQuantizationParams params;
  TfLiteQuantization quantization;
};

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void) { return ow_zeroed(sizeof(TfLiteOpaqueTensorBuilder)); }

void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder) { ow_release(builder); }

#define BUILD(Name, Type, field)                                                                                     \
  TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSet##Name(TfLiteOpaqueTensorBuilder* builder, Type field) {    \
    OW_REQUIRE(builder != NULL, NULL);                                                                               \
    builder->field = field;                                                                                          \
    return builder;                                                                                                  \
  }
BUILD(Type, TfLiteType, type)
BUILD(Data, void*, data)
BUILD(AllocationType, TfLiteAllocationType, allocation_type)
BUILD(QuantizationParams, TfLiteQuantizationParams, params)
BUILD(Quantization, TfLiteQuantization, quantization)

TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* opaque, TfLiteOpaqueTensorBuilder* builder, int* index) {
  TfLiteContext* context = (TfLiteContext*)opaque;
  OW_REQUIRE(context != NULL && builder != NULL, kTfLiteError);
  bool dynamic = builder->allocation_type == kTfLiteDynamic;
  bool arena = builder->allocation_type == kTfLiteArenaRw || builder->allocation_type == kTfLiteArenaRwPersistent;
  OW_REQUIRE(dynamic || arena, kTfLiteError);
  OW_REQUIRE(!dynamic || builder->data != NULL, kTfLiteError);
  OW_REQUIRE(!arena || builder->data == NULL, kTfLiteError);
  int added = -1;
  TfLiteStatus status = context->AddTensors(context, 1, &added);
  if (status != kTfLiteOk) return status;
  TfLiteTensor* t = context->tensors + added;
  t->type = builder->type;
  t->data.data = builder->data;
  t->allocation_type = builder->allocation_type;
  t->params = builder->params;
  t->quantization = builder->quantization;
  if (index != NULL) *index = added;
  return kTfLiteOk;
}

/* --- delegates of the opaque interface ----------------------------------------------------------------------------- */

TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* builder) {
  if (builder == NULL) return NULL;
  TfLiteDelegate* delegate = ow_zeroed(sizeof *delegate);
  TfLiteOpaqueDelegateBuilder* copy = ow_alloc(sizeof *copy);
  if (delegate == NULL || copy == NULL) {
    ow_release(delegate);
    ow_release(copy);
    return NULL;
  }
  *copy = *builder;
  delegate->data_ = builder->data;
  delegate->flags = builder->flags;
  delegate->opaque_delegate_builder = copy;
  return delegate;
}

void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate) {
  if (delegate == NULL) return;
  ow_release(delegate->opaque_delegate_builder);
  ow_release(delegate);
}

void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate) {
  if (delegate == NULL) return NULL;
  return delegate->opaque_delegate_builder != NULL ? delegate->opaque_delegate_builder->data : delegate->data_;
}
