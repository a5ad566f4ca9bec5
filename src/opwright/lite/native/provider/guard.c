/* Calls into a library that C++ exceptions do not leave: one becomes a report, and the callback has failed.

   An exception looks for its handler frame by frame, by the personality that each frame names (Itanium C++ ABI, Exception
   Handling, level I). C has no way to name one, so ow_guarded is written in assembly: it calls a function, and names
   `personality`, which takes every exception, says what it is, lets its owner delete it, and goes on behind the call as
   longjmp would. Nothing of a C++ library is linked: what is needed of one is found in the library that threw.

   On x86-64 with ELF alone; elsewhere a function is called as it is, and an exception ends the process. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#if defined(__x86_64__) && defined(__ELF__)
#include <dlfcn.h>

/* sp: of ow_guarded, with the registers that it saved above it. */
typedef struct Guard {
  void* sp;
  struct Guard* outer;
  int caught;
  char words[256];
} Guard;
static _Thread_local Guard* innermost;

OW_INSIDE void* ow_guarded(void* function, void* a, void* b, void* c, void* d, void** sp);
OW_INSIDE _Noreturn void ow_guarded_behind(void* sp);
OW_INSIDE int ow_guarded_personality(int version, int actions, uint64_t kind, void* exception, void* context);

__asm__(
    ".text\n"
    ".hidden ow_guarded\n.globl ow_guarded\n.type ow_guarded, @function\n"
    "ow_guarded:\n"
    ".cfi_startproc\n"
    ".cfi_personality 0x1b, ow_guarded_personality\n" /* relative to the place, 4 bytes */
    "  pushq %rbp\n"
    ".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
    "  movq %rsp, %rbp\n"
    ".cfi_def_cfa_register %rbp\n"
    "  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    ".cfi_offset %rbx, -24\n.cfi_offset %r12, -32\n.cfi_offset %r13, -40\n.cfi_offset %r14, -48\n.cfi_offset %r15, -56\n"
    "  subq $8, %rsp\n"
    "  movq %rsp, (%r9)\n"
    "  movq %rdi, %rax\n  movq %rsi, %rdi\n  movq %rdx, %rsi\n  movq %rcx, %rdx\n  movq %r8, %rcx\n"
    "  call *%rax\n"
    ".Low_behind:\n"
    "  leaq -40(%rbp), %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    ".cfi_def_cfa %rsp, 8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size ow_guarded, .-ow_guarded\n"
    ".hidden ow_guarded_behind\n.globl ow_guarded_behind\n.type ow_guarded_behind, @function\n"
    "ow_guarded_behind:\n"
    "  movq %rdi, %rsp\n"
    "  leaq 48(%rdi), %rbp\n"
    "  xorl %eax, %eax\n"
    "  jmp .Low_behind\n"
    ".size ow_guarded_behind, .-ow_guarded_behind\n");

/* --- what an exception is ------------------------------------------------------------------------------------------- */

/* _Unwind_Exception: in front of the object that was thrown. A __cxa_exception ends with it, and begins with the type. */
typedef struct Exception {
  uint64_t kind; /* eight letters: whose it is, and C++ */
  void (*cleanup)(int reason, struct Exception* exception);
  uint64_t private_words[2];
} Exception;
enum { TYPE_BEFORE = 80, CAUGHT_ELSEWHERE = 1 };
#define CPP UINT64_C(0x432B2B00)              /* C++\0 */
#define GNU_COPY UINT64_C(0x474E5543432B2B01) /* GNUCC++\1 */

typedef struct Type {
  const void* const* functions; /* of the class of types that it is of */
  const char* name;             /* mangled; may begin with * */
} Type;
typedef struct {
  Type type;
  const Type* base;
} OneBase; /* __si_class_type_info */
typedef struct {
  const Type* type;
  long flags; /* bit 0: virtual; from bit 8 on the offset */
} Base;
typedef struct {
  Type type;
  unsigned flags, count;
  Base bases[];
} ManyBases; /* __vmi_class_type_info */

/* Whether a type is one of the ABI's classes of types, by the symbol that its functions have. */
static int is_of(const Type* type, const char* symbol) {
  Dl_info info;
  return dladdr((const void*)type->functions, &info) != 0 && info.dli_sname != NULL &&
         strcmp(info.dli_sname, symbol) == 0 && (const char*)type->functions == (const char*)info.dli_saddr + 16;
}

/* The std::exception inside an object of a type; null for none. */
static void* exception_in(const Type* type, void* object, int depth) {
  const char* name = type->name + (type->name[0] == '*');
  if (strcmp(name, "St9exception") == 0) return object;
  if (depth == 0) return NULL;
  if (is_of(type, "_ZTVN10__cxxabiv120__si_class_type_infoE")) {
    return exception_in(((const OneBase*)type)->base, object, depth - 1);
  }
  if (is_of(type, "_ZTVN10__cxxabiv121__vmi_class_type_infoE")) {
    const ManyBases* many = (const ManyBases*)type;
    for (unsigned i = 0; i < many->count; ++i) {
      if ((many->bases[i].flags & 1) != 0) continue; /* virtual: where it is only the object knows */
      void* found = exception_in(many->bases[i].type, (char*)object + (many->bases[i].flags >> 8), depth - 1);
      if (found != NULL) return found;
    }
  }
  return NULL;
}

static void add(char* words, size_t room, const char* text) { strncat(words, text, room - strlen(words) - 1); }

/* The C++ library that made an exception; null where it has no name of its own. */
static void* library_of(const Exception* exception) {
  Dl_info info;
  void* cleanup;
  memcpy(&cleanup, &exception->cleanup, sizeof cleanup);
  if (dladdr(cleanup, &info) == 0 || info.dli_fname == NULL) return NULL;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* The type's name, and what() where it is a std::exception. */
static void describe(const Exception* exception, void* library, char* words, size_t room) {
  words[0] = 0;
  if (exception->kind == GNU_COPY) { /* of std::rethrow_exception: it begins with where the first one's object is */
    const char* object;
    memcpy(&object, (const char*)exception - TYPE_BEFORE, sizeof object);
    exception = (const Exception*)(object - sizeof *exception);
  }
  if ((exception->kind & UINT64_C(0xFFFFFFFF)) != CPP) {
    add(words, room, "of a kind that is not looked into");
    return;
  }
  const Type* type;
  memcpy(&type, (const char*)exception - TYPE_BEFORE, sizeof type);
  const char* name = type->name + (type->name[0] == '*');
  char* (*demangle)(const char*, char*, size_t*, int*) = NULL;
  void* symbol = library == NULL ? NULL : dlsym(library, "__cxa_demangle");
  memcpy(&demangle, &symbol, sizeof demangle);
  int status = -1;
  char* shown = demangle == NULL ? NULL : demangle(name, NULL, NULL, &status);
  add(words, room, shown != NULL && status == 0 ? shown : name);
  free(shown);
  void* inside = exception_in(type, (void*)(exception + 1), 8);
  if (inside != NULL) { /* two destructors, then what */
    const char* (*what)(const void*);
    memcpy(&what, *(const char* const* const*)inside + 2, sizeof what);
    const char* text = what(inside);
    add(words, room, ": ");
    add(words, room, text == NULL ? "" : text);
  }
}

/* End an exception as a handler would: its library counts those that are on their way. */
static void end_exception(Exception* exception, void* library) {
  void* begin = library == NULL ? NULL : dlsym(library, "__cxa_begin_catch");
  void* end = library == NULL ? NULL : dlsym(library, "__cxa_end_catch");
  if (begin != NULL && end != NULL) {
    void* (*begin_catch)(void*);
    void (*end_catch)(void);
    memcpy(&begin_catch, &begin, sizeof begin_catch);
    memcpy(&end_catch, &end, sizeof end_catch);
    begin_catch(exception);
    end_catch();
  } else if (exception->cleanup != NULL) {
    exception->cleanup(CAUGHT_ELSEWHERE, exception);
  }
}

int ow_guarded_personality(int version, int actions, uint64_t kind, void* exception, void* context) {
  enum { SEARCH = 1, HANDLER = 4, FORCED = 8, FOUND = 6, CONTINUE = 8 };
  (void)kind, (void)context;
  if (version != 1 || (actions & FORCED) != 0 || innermost == NULL) return CONTINUE; /* a thread that is cancelled */
  if ((actions & SEARCH) != 0) return FOUND;
  if ((actions & HANDLER) == 0) return CONTINUE;
  Guard* guard = innermost;
  guard->caught = 1;
  void* library = library_of(exception);
  describe(exception, library, guard->words, sizeof guard->words);
  end_exception(exception, library);
  if (library != NULL) dlclose(library);
  ow_guarded_behind(guard->sp);
}

void* ow_call(void* function, void* a, void* b, void* c, void* d) {
  Guard guard;
  guard.outer = innermost;
  guard.caught = 0;
  innermost = &guard;
  void* result = ow_guarded(function, a, b, c, d, &guard.sp);
  innermost = guard.outer;
  if (guard.caught) ow_thrown(guard.words);
  return result;
}
#else
void* ow_call(void* function, void* a, void* b, void* c, void* d) {
  void* (*f)(void*, void*, void*, void*);
  memcpy(&f, &function, sizeof f);
  return f(a, b, c, d);
}
#endif
