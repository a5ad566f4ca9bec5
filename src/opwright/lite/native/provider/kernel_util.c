/* The C++ helpers of kernel_util.h and RuntimeShape, under the names that C++ compilers give them.

   These are the names of the Itanium ABI, which everybody but Microsoft keeps to. A std::string and a RuntimeShape come
   back through a hidden pointer, as a large struct does in C; strings are libstdc++'s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opwright/lite/helpers.h"
#include "provider.h"

/* A C++ function of namespace tflite, by its name behind the prefix that all share. */
#define TFLITE(name) _ZN6tflite##name
/* Declared before it is defined, or compilers miss a header. */
#define DEFINE(Result, name, parameters) \
  OW_EXPORT Result name parameters;      \
  Result name parameters

typedef TfLiteContext Context;
typedef TfLiteNode Node;
typedef TfLiteTensor Tensor;

/* --- tensors of a node --------------------------------------------------------------------------------------------- */

DEFINE(const Tensor*, TFLITE(8GetInputEPK13TfLiteContextPK10TfLiteNodei), (const Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  return ow_tensor_at(c, n->inputs, i);
}
DEFINE(const Tensor*, TFLITE(22GetOptionalInputTensorEPK13TfLiteContextPK10TfLiteNodei),
       (const Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  return ow_tensor_at(c, n->inputs, i);
}
DEFINE(Tensor*, TFLITE(16GetVariableInputEP13TfLiteContextPK10TfLiteNodei), (Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  Tensor* t = ow_tensor_at(c, n->inputs, i);
  return t != NULL && t->is_variable ? t : NULL;
}
DEFINE(Tensor*, TFLITE(9GetOutputEP13TfLiteContextPK10TfLiteNodei), (Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  return ow_tensor_at(c, n->outputs, i);
}
DEFINE(Tensor*, TFLITE(12GetTemporaryEP13TfLiteContextPK10TfLiteNodei), (Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  return ow_tensor_at(c, n->temporaries, i);
}
DEFINE(Tensor*, TFLITE(16GetIntermediatesEP13TfLiteContextPK10TfLiteNodei), (Context* c, const Node* n, int i)) {
  OW_REQUIRE(c != NULL && n != NULL, NULL);
  return ow_tensor_at(c, n->intermediates, i);
}

#define SAFE(name, list, word, Out)                                                             \
  DEFINE(TfLiteStatus, name, (const Context* c, const Node* n, int i, Out** t)) {               \
    OW_REQUIRE(c != NULL && n != NULL && t != NULL, kTfLiteError);                              \
    return ow_tensor_or_error(c, n->list, i, word, (Tensor**)t);                                \
  }
SAFE(TFLITE(12GetInputSafeEPK13TfLiteContextPK10TfLiteNodeiPPK12TfLiteTensor), inputs, "input", const Tensor)
SAFE(TFLITE(13GetOutputSafeEPK13TfLiteContextPK10TfLiteNodeiPP12TfLiteTensor), outputs, "output", Tensor)
SAFE(TFLITE(16GetTemporarySafeEPK13TfLiteContextPK10TfLiteNodeiPP12TfLiteTensor), temporaries, "temporary", Tensor)
SAFE(TFLITE(20GetIntermediatesSafeEPK13TfLiteContextPK10TfLiteNodeiPP12TfLiteTensor), intermediates, "intermediate",
     Tensor)

/* --- shapes -------------------------------------------------------------------------------------------------------- */

typedef struct {
  const int* data;
  size_t size;
} IntList; /* std::initializer_list<int> */

DEFINE(bool, TFLITE(14HaveSameShapesEPK12TfLiteTensorS2_), (const Tensor* a, const Tensor* b)) {
  OW_REQUIRE(a != NULL && b != NULL, false);
  return ow_same_shapes(a, b) != 0;
}
DEFINE(bool, TFLITE(23HasUnspecifiedDimensionEPK12TfLiteTensor), (const Tensor* t)) {
  OW_REQUIRE(t != NULL, false);
  return ow_has_unknown_size(t) != 0;
}
DEFINE(TfLiteStatus, TFLITE(19CheckedShapeProductEP13TfLiteContextPKiiPKcRm),
       (Context* c, const int* dims, int count, const char* what, size_t* product)) {
  OW_REQUIRE(c != NULL && count >= 0 && (dims != NULL || count == 0), kTfLiteError);
  return ow_shape_product(c, dims, (size_t)count, what, product);
}
DEFINE(TfLiteStatus, TFLITE(19CheckedShapeProductEP13TfLiteContextSt16initializer_listIiEPKcRm),
       (Context* c, IntList dims, const char* what, size_t* product)) {
  OW_REQUIRE(c != NULL, kTfLiteError);
  return ow_shape_product(c, dims.data, dims.size, what, product);
}
DEFINE(TfLiteStatus, TFLITE(24CheckedShapeProductToIntEP13TfLiteContextSt16initializer_listIiEPKcRi),
       (Context* c, IntList dims, const char* what, int* product)) {
  OW_REQUIRE(c != NULL, kTfLiteError);
  size_t wide = 0;
  TF_LITE_ENSURE_STATUS(ow_shape_product(c, dims.data, dims.size, what, &wide));
  TF_LITE_ENSURE_MSG(c, wide <= INT32_MAX, "the product of the sizes is larger than an int");
  *product = (int)wide;
  return kTfLiteOk;
}

static TfLiteStatus broadcast(Context* c, const Tensor* const* inputs, int count, TfLiteIntArray** result) {
  int rank = 0;
  for (int k = 0; k < count; ++k) {
    OW_REQUIRE(inputs[k] != NULL && inputs[k]->dims != NULL, kTfLiteError);
    if (inputs[k]->dims->size > rank) rank = inputs[k]->dims->size;
  }
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  OW_REQUIRE(shape != NULL, kTfLiteError);
  for (int i = 0; i < rank; ++i) { /* from the last dimension on */
    int size = 1;
    for (int k = 0; k < count; ++k) {
      const TfLiteIntArray* dims = inputs[k]->dims;
      int own = i < dims->size ? dims->data[dims->size - 1 - i] : 1;
      if (own != 1 && size != 1 && own != size) {
        c->ReportError(c, "sizes %d and %d of dimension %d from the end do not broadcast", size, own, i + 1);
        TfLiteIntArrayFree(shape);
        return kTfLiteError;
      }
      if (own != 1) size = own;
    }
    shape->data[rank - 1 - i] = size;
  }
  *result = shape;
  return kTfLiteOk;
}

DEFINE(TfLiteStatus, TFLITE(26CalculateShapeForBroadcastEP13TfLiteContextPK12TfLiteTensorS4_PP14TfLiteIntArray),
       (Context* c, const Tensor* a, const Tensor* b, TfLiteIntArray** shape)) {
  const Tensor* inputs[] = {a, b};
  OW_REQUIRE(c != NULL && shape != NULL, kTfLiteError);
  return broadcast(c, inputs, 2, shape);
}
DEFINE(TfLiteStatus, TFLITE(26CalculateShapeForBroadcastEP13TfLiteContextPK12TfLiteTensorS4_S4_PP14TfLiteIntArray),
       (Context* c, const Tensor* a, const Tensor* b, const Tensor* d, TfLiteIntArray** shape)) {
  const Tensor* inputs[] = {a, b, d};
  OW_REQUIRE(c != NULL && shape != NULL, kTfLiteError);
  return broadcast(c, inputs, 3, shape);
}

DEFINE(TfLiteStatus, TFLITE(23GetOutputShapeFromInputEP13TfLiteContextPK12TfLiteTensorPP14TfLiteIntArray),
       (Context* c, const Tensor* input, TfLiteIntArray** shape)) {
  OW_REQUIRE(c != NULL && shape != NULL, kTfLiteError);
  OW_REQUIRE(input != NULL && input->dims != NULL, kTfLiteError);
  TF_LITE_ENSURE_MSG(c, input->type == kTfLiteInt32 && input->dims->size == 1, "a shape is a vector of int32");
  int rank = input->dims->data[0];
  OW_REQUIRE(input->data.i32 != NULL || rank == 0, kTfLiteError);
  TfLiteIntArray* result = TfLiteIntArrayCreate(rank);
  OW_REQUIRE(result != NULL, kTfLiteError);
  for (int i = 0; i < rank; ++i) result->data[i] = input->data.i32[i];
  *shape = result;
  return kTfLiteOk;
}

/* --- types and platforms ------------------------------------------------------------------------------------------- */

DEFINE(int, TFLITE(21TfLiteTypeGetSizeBitsE10TfLiteType), (TfLiteType type)) { return ow_bits(type); }
DEFINE(int, TFLITE(17TfLiteTypeGetSizeE10TfLiteType), (TfLiteType type)) { return (ow_bits(type) + 7) / 8; }
DEFINE(bool, TFLITE(16IsMobilePlatformEv), (void)) { return ow_is_mobile() != 0; }

/* --- strings: always on the heap, so that nothing points into itself ------------------------------------------------- */

typedef struct {
  char* text;
  size_t size;
  size_t capacity; /* the first half of the room for short ones */
  size_t rest;
} String;

static String string_of(const char* text, size_t size) {
  String string = {malloc(size + 17), size, size + 16, 0}; /* longer than what libstdc++ keeps inside */
  if (string.text == NULL) abort();                         /* C++ would throw, which C cannot */
  memcpy(string.text, text, size);
  string.text[size] = 0;
  return string;
}

static size_t write_shape(char* text, size_t room, const TfLiteIntArray* shape) {
  size_t used = (size_t)snprintf(text, room, "[");
  for (int i = 0; shape != NULL && i < shape->size && used + 16 < room; ++i) {
    used += (size_t)snprintf(text + used, room - used, i == 0 ? "%d" : ", %d", shape->data[i]);
  }
  return used + (size_t)snprintf(text + used, room - used, "]");
}

DEFINE(String, TFLITE(19GetShapeDebugStringB5cxx11EPK14TfLiteIntArray), (const TfLiteIntArray* shape)) {
  char text[512];
  return string_of(text, write_shape(text, sizeof text, shape));
}
DEFINE(String, TFLITE(20GetTensorDebugStringB5cxx11EPK12TfLiteTensor), (const Tensor* t)) {
  char text[640];
  if (t == NULL) return string_of("{}", 2);
  size_t used = (size_t)snprintf(text, sizeof text, "{%s, ", TfLiteTypeGetName(t->type));
  used += write_shape(text + used, sizeof text - used - 2, t->dims);
  text[used++] = '}';
  return string_of(text, used);
}

/* --- RuntimeShape: six sizes inside, as headers have it since they also call the functions below -------------------- */

typedef struct {
  int32_t size;
  union {
    int32_t inside[6];
    int32_t* pointer;
  } dims;
} RuntimeShape;

static const int32_t* sizes_of(const RuntimeShape* shape) {
  return shape->size > 6 ? shape->dims.pointer : shape->dims.inside;
}

DEFINE(RuntimeShape, TFLITE(14GetTensorShapeEPK12TfLiteTensor), (const Tensor* t)) {
  RuntimeShape shape;
  memset(&shape, 0, sizeof shape);
  if (t == NULL || t->dims == NULL) return shape;
  int32_t* sizes = shape.dims.inside;
  if (t->dims->size > 6) {
    sizes = shape.dims.pointer = malloc((size_t)t->dims->size * sizeof(int32_t));
    if (sizes == NULL) abort();
  }
  shape.size = t->dims->size;
  memcpy(sizes, t->dims->data, (size_t)t->dims->size * sizeof(int32_t));
  return shape;
}
DEFINE(void, _ZN6tflite12RuntimeShapeD1Ev, (RuntimeShape * shape)) {
  if (shape->size > 6) free(shape->dims.pointer);
}
DEFINE(void, _ZN6tflite12RuntimeShapeD2Ev, (RuntimeShape * shape)) { _ZN6tflite12RuntimeShapeD1Ev(shape); }
DEFINE(int32_t, _ZNK6tflite12RuntimeShape4DimsEi, (const RuntimeShape* shape, int i)) { return sizes_of(shape)[i]; }
DEFINE(int, _ZNK6tflite12RuntimeShape8FlatSizeEv, (const RuntimeShape* shape)) {
  int count = 1;
  for (int32_t i = 0; i < shape->size; ++i) count *= sizes_of(shape)[i];
  return count;
}
