/* tflite::MutableOpResolver for functions that register operators, whatever headers they were compiled against: its
   functions are no virtual ones, so the object itself is never looked at. What is added is kept, by thread, for the
   interpreter to ask for. And what FlatBuffers' headers want of its library. */
#if defined(__APPLE__)
#include <xlocale.h>
#elif !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L /* newlocale */
#include <locale.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define RESOLVER(name) _ZN6tflite17MutableOpResolver##name
#define DEFINE(Result, name, parameters) \
  OW_EXPORT Result name parameters;      \
  Result name parameters

enum { CERTAIN_BYTES = 64 }; /* of a record, which every generation of the headers has */

static _Thread_local struct {
  int open, count;
  OwAdded* added;
} here;

void ow_added_begin(void) {
  ow_added_end();
  here.open = 1;
}

void ow_added_end(void) {
  for (int i = 0; i < here.count; ++i) ow_release((char*)here.added[i].name);
  ow_release(here.added);
  memset(&here, 0, sizeof here);
}

int ow_added(const OwAdded** added) {
  *added = here.added;
  return here.count;
}

/* name: null for a builtin operator. The record is copied, as officially: it may go when the function returns. */
static void add(const char* name, int builtin_code, const TfLiteRegistration* registration, int version) {
  if (!here.open || registration == NULL) return;
  OwAdded* more = ow_realloc(here.added, ((size_t)here.count + 1) * sizeof *more);
  if (more == NULL) return;
  here.added = more;
  OwAdded* one = more + here.count++;
  memset(one, 0, sizeof *one);
  if (name != NULL) {
    char* copy = ow_alloc(strlen(name) + 1);
    if (copy != NULL) strcpy(copy, name);
    one->name = copy;
  }
  one->builtin_code = builtin_code;
  one->version = version;
  one->from = registration;
  memcpy(&one->registration, registration, CERTAIN_BYTES);
}

DEFINE(void, RESOLVER(9AddCustomEPKcPK18TfLiteRegistrationi),
       (void* self, const char* name, const TfLiteRegistration* r, int version)) {
  (void)self;
  add(name == NULL ? "" : name, kTfLiteBuiltinCustom, r, version);
}
DEFINE(void, RESOLVER(9AddCustomEPKcPK18TfLiteRegistrationii),
       (void* self, const char* name, const TfLiteRegistration* r, int first, int last)) {
  (void)self, (void)first; /* a version serves those before it */
  add(name == NULL ? "" : name, kTfLiteBuiltinCustom, r, last);
}
DEFINE(void, RESOLVER(10AddBuiltinENS_15BuiltinOperatorEPK18TfLiteRegistrationi),
       (void* self, int32_t code, const TfLiteRegistration* r, int version)) {
  (void)self;
  add(NULL, code, r, version);
}
DEFINE(void, RESOLVER(10AddBuiltinENS_15BuiltinOperatorEPK18TfLiteRegistrationii),
       (void* self, int32_t code, const TfLiteRegistration* r, int first, int last)) {
  (void)self, (void)first;
  add(NULL, code, r, last);
}
DEFINE(void, RESOLVER(6AddAllERKS0_), (void* self, const void* other)) { (void)self, (void)other; }
DEFINE(const TfLiteRegistration*, _ZNK6tflite17MutableOpResolver6FindOpENS_15BuiltinOperatorEi,
       (const void* self, int32_t code, int version)) {
  (void)self, (void)code, (void)version;
  return NULL;
}
DEFINE(const TfLiteRegistration*, _ZNK6tflite17MutableOpResolver6FindOpEPKci,
       (const void* self, const char* name, int version)) {
  (void)self, (void)name, (void)version;
  return NULL;
}

#if !defined(_WIN32)
/* flatbuffers::ClassicLocale::instance_: the locale that numbers are written in, whatever the process has. */
OW_EXPORT locale_t _ZN11flatbuffers13ClassicLocale9instance_E;
locale_t _ZN11flatbuffers13ClassicLocale9instance_E;
__attribute__((constructor)) static void make_locale(void) {
  _ZN11flatbuffers13ClassicLocale9instance_E = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}
#endif
