/* Every form in which a library gives its registrations, and some that are none. Compile with -DNAME to leave out. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/c_api_opaque.h"
#include "tensorflow/lite/c/common.h"

static TfLiteStatus fill(TfLiteContext* context, TfLiteNode* node, float value) {
  TfLiteTensor* y = &context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < y->bytes / 4; ++i) y->data.f[i] = value;
  return kTfLiteOk;
}
#define FILLS(name, value) \
  static TfLiteStatus name(TfLiteContext* c, TfLiteNode* n) { return fill(c, n, value); }
FILLS(one, 1)
FILLS(two, 2)
FILLS(three, 3)
FILLS(four, 4)
FILLS(five, 5)
static TfLiteStatus opaque_three(TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
  return three((TfLiteContext*)c, (TfLiteNode*)n);
}
static TfLiteStatus opaque_four(TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
  return four((TfLiteContext*)c, (TfLiteNode*)n);
}

TfLiteRegistration* Register_BY_ADDRESS(void) {
  static TfLiteRegistration r = {NULL, NULL, NULL, one};
  return &r;
}
TfLiteRegistration ByValueRegistration(void) {
  TfLiteRegistration r = {NULL, NULL, NULL, two};
  return r;
}
TfLiteOperator* ThreeRegistrationExternal(void) {
  static TfLiteOperator* op;
  if (op == NULL) {
    op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Three", 2, NULL);
    TfLiteOperatorSetInvoke(op, opaque_three);
  }
  return op;
}
static TfLiteOperator* four_operator(void) {
  static TfLiteOperator* op;
  if (op == NULL) {
    op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Four", 1, NULL);
    TfLiteOperatorSetInvoke(op, opaque_four);
  }
  return op;
}
const TfLiteRegistration* FourOpRegistration(void) {
  static TfLiteRegistration r;
  r.registration_external = four_operator();
  return &r;
}
TfLiteRegistration FourByValueOpRegistration(void) {
  TfLiteRegistration r = {0};
  r.registration_external = four_operator();
  return r;
}
/* A record of old headers, 64 bytes, with what ends a page behind it: a byte more cannot be read. */
void* Register_OLD(void) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  TfLiteRegistration r = {NULL, NULL, NULL, five};
  return memcpy(pages + 4096 - 64, &r, 64);
}
/* The same in the library's own data, followed by the address of an operator that is none of its. */
static struct {
  char record[64];
} old_record;
static TfLiteOperator* behind;
void* Register_OLD_STATIC(void) {
  TfLiteRegistration r = {NULL, NULL, NULL, five};
  behind = four_operator();
  return memcpy(&old_record, &r, 64);
}
/* One record whose invoke is the operator's and whose init is its own. */
TfLiteRegistration* Register_MIXED(void) {
  static TfLiteRegistration r;
  r.invoke = one;
  r.registration_external = four_operator();
  return &r;
}
void* use_behind(void) { return behind; }

/* --- none: not called by discovery, which goes by the ends of names --------------------------------------------- */

void* GivesNull(void) { return NULL; }
TfLiteRegistration* GivesNothing(void) {
  static TfLiteRegistration r;
  return &r;
}
TfLiteRegistration GivesNothingByValue(void) {
  TfLiteRegistration r = {0};
  return r;
}
TfLiteOperator* GivesBareOperator(void) { return TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Bare", 1, NULL); }
TfLiteOperator* GivesVersionZero(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Zero", 0, NULL);
  TfLiteOperatorSetInvoke(op, opaque_three);
  return op;
}
void* GivesNonsense(void) { return (void*)0x123456; }
void* GivesOdd(void) { return (char*)&old_record + 1; }
void* GivesText(void) {
  static char text[] = "This is no TfLiteRegistration, but a text that is long enough to be taken for one, were it not looked at.";
  return text;
}
/* A struct with a field in front, as after a change that appends in the wrong place. */
typedef struct {
  size_t size;
  void *init, *free, *prepare, *invoke;
  char rest[56];
} Shifted;
Shifted* GivesShifted(void) {
  static Shifted s = {64, NULL, NULL, NULL, (void*)one};
  return &s;
}
typedef struct {
  void *init, *free, *prepare, *invoke;
  char rest[168];
} Large;
Large GivesLarge(void) {
  Large r = {NULL, NULL, NULL, (void*)one};
  memset(r.rest, 7, sizeof r.rest);
  return r;
}
