/* Functions of a library that give registrations: calling one, and what it adds to a resolver.

   tflite::MutableOpResolver's functions are no virtual ones, whatever headers a library was compiled against, so the
   object itself is never looked at: a function that takes one is called as any other. What is added is kept, by thread,
   for the interpreter to ask for. And what FlatBuffers' headers want of its library. */
#if defined(__APPLE__)
#include <xlocale.h>
#elif !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L /* newlocale */
#include <locale.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "provider.h"

/* --- calling ------------------------------------------------------------------------------------------------------- */

static _Thread_local char thrown[256]; /* by the entry that runs, or ran last */

void ow_thrown(const char* words) {
  if (ow_here == NULL) { /* a function that gives registrations */
    memcpy(thrown, words, strnlen(words, sizeof thrown - 1) + 1);
    thrown[sizeof thrown - 1] = 0;
    return;
  }
  ow_here->thrown++;
  ow_here->misuse++;
  ow_report(ow_here, "a C++ exception: %s", words);
}

#if defined(__x86_64__)
int ow_call_by_value(void* function, void* buffer, void** result) {
  /* A record by value goes to where the hidden first argument points, which is also what is given back. A function
     that gives a pointer takes no argument and leaves it alone. */
  thrown[0] = 0;
  *result = ow_call(function, buffer, NULL, NULL, NULL);
  if (thrown[0] != 0) {
    memcpy(buffer, thrown, sizeof thrown);
    return 2;
  }
  return *result == buffer;
}
#elif defined(__aarch64__)
int ow_call_by_value(void* function, void* buffer, void** result) {
  /* Where a record by value goes is told in x8 and not given back, so what was written decides. */
  register void* x8 __asm__("x8") = buffer;
  register void* x0 __asm__("x0") = NULL;
  register void* x9 __asm__("x9") = function;
  __asm__ volatile("blr x9"
                   : "+r"(x0), "+r"(x8), "+r"(x9)
                   :
                   : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                     "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
                     "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc");
  static const char zeros[256];
  *result = x0;
  return memcmp(buffer, zeros, sizeof zeros) != 0;
}
#else
int ow_call_by_value(void* function, void* buffer, void** result) {
  /* How records by value are given back is not known here: a function that gives a pointer is all that works. */
  void* (*f)(void);
  (void)buffer;
  memcpy(&f, &function, sizeof f);
  *result = f();
  return 0;
}
#endif

/* --- resolvers ----------------------------------------------------------------------------------------------------- */

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

/* --- FlatBuffers --------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
/* flatbuffers::ClassicLocale::instance_: the locale that numbers are written in, whatever the process has. */
OW_EXPORT locale_t _ZN11flatbuffers13ClassicLocale9instance_E;
locale_t _ZN11flatbuffers13ClassicLocale9instance_E;
__attribute__((constructor)) static void make_locale(void) {
  _ZN11flatbuffers13ClassicLocale9instance_E = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}
#endif
