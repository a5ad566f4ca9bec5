/* Asynchronous kernels: kept as they are given, since nobody on the CPU asks for one. Attribute maps and wrappers work. */
#include <string.h>

#include "opwright/lite/async.h"
#include "provider.h"

/* --- kernels ------------------------------------------------------------------------------------------------------- */

struct TfLiteAsyncKernel {
  void* kernel_data;
  TfLiteStatus (*register_buffer)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteIoType, const TfLiteBackendBuffer*,
                                  const TfLiteAttributeMap*, TfLiteBufferHandle);
  TfLiteStatus (*register_buffer_slice)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle,
                                        const TfLiteAttributeMap*, TfLiteBufferHandle);
  TfLiteStatus (*unregister_buffer)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle);
  void (*supported_buffer_types)(const TfLiteAsyncKernel*, TfLiteIoType, const char* const**, size_t*);
  void (*supported_synchronizations)(const TfLiteAsyncKernel*, TfLiteIoType, const char* const**, size_t*);
  bool (*reconcile_restrictions)(const TfLiteAsyncKernel*, const TfLiteOpaqueContext*, const TfLiteOpaqueNode*, int,
                                 const TfLiteAttributeMap*, TfLiteAttributeMap*, TfLiteAttributeMap*);
  TfLiteStatus (*set_attributes)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, int,
                                 const TfLiteAttributeMap*);
  TfLiteStatus (*set_buffer_attributes)(TfLiteAsyncKernel*, const TfLiteBackendBuffer*, const TfLiteAttributeMap*);
  TfLiteStatus (*get_buffer_attributes)(TfLiteAsyncKernel*, const TfLiteBackendBuffer*, TfLiteAttributeMap*);
  TfLiteStatus (*prepare)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*);
  TfLiteStatus (*eval)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, TfLiteExecutionTask*);
  TfLiteStatus (*wait)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*);
  TfLiteStatus (*finish)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*);
};

TfLiteAsyncKernel* TfLiteAsyncKernelCreate(void* kernel_data) {
  TfLiteAsyncKernel* kernel = ow_zeroed(sizeof *kernel);
  if (kernel != NULL) kernel->kernel_data = kernel_data;
  return kernel;
}

void* TfLiteAsyncKernelGetKernelData(const TfLiteAsyncKernel* kernel) {
  OW_REQUIRE(kernel != NULL, NULL);
  return kernel->kernel_data;
}

void TfLiteAsyncKernelDelete(TfLiteAsyncKernel* kernel) { ow_release(kernel); }

#define SET(Name, field, Result, parameters)                                                     \
  void TfLiteAsyncKernelSet##Name(TfLiteAsyncKernel* async_kernel, Result(*field) parameters) {  \
    OW_REQUIRE(async_kernel != NULL, );                                                          \
    async_kernel->field = field;                                                                 \
  }
SET(RegisterBuffer, register_buffer, TfLiteStatus,
    (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteIoType, const TfLiteBackendBuffer*, const TfLiteAttributeMap*,
     TfLiteBufferHandle))
SET(RegisterBufferSlice, register_buffer_slice, TfLiteStatus,
    (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle, const TfLiteAttributeMap*, TfLiteBufferHandle))
SET(UnregisterBuffer, unregister_buffer, TfLiteStatus, (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle))
SET(SupportedBufferTypes, supported_buffer_types, void,
    (const TfLiteAsyncKernel*, TfLiteIoType, const char* const**, size_t*))
SET(SupportedSynchronizations, supported_synchronizations, void,
    (const TfLiteAsyncKernel*, TfLiteIoType, const char* const**, size_t*))
SET(ReconcileRestrictions, reconcile_restrictions, bool,
    (const TfLiteAsyncKernel*, const TfLiteOpaqueContext*, const TfLiteOpaqueNode*, int, const TfLiteAttributeMap*,
     TfLiteAttributeMap*, TfLiteAttributeMap*))
SET(SetAttributes, set_attributes, TfLiteStatus,
    (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, int, const TfLiteAttributeMap*))
SET(SetBufferAttributes, set_buffer_attributes, TfLiteStatus,
    (TfLiteAsyncKernel*, const TfLiteBackendBuffer*, const TfLiteAttributeMap*))
SET(GetBufferAttributes, get_buffer_attributes, TfLiteStatus,
    (TfLiteAsyncKernel*, const TfLiteBackendBuffer*, TfLiteAttributeMap*))
SET(Prepare, prepare, TfLiteStatus, (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*))
SET(Eval, eval, TfLiteStatus, (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, TfLiteExecutionTask*))
SET(Wait, wait, TfLiteStatus, (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*))
SET(Finish, finish, TfLiteStatus, (TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*))

/* --- tasks: nobody makes one here ---------------------------------------------------------------------------------- */

#define NO_TASK(Result, Name, parameters, result)                                     \
  Result TfLiteExecutionTask##Name parameters {                                       \
    ow_misuse(__func__, "there are no tasks: operators run on the CPU at once");      \
    return result;                                                                    \
  }
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
NO_TASK(TfLiteStatus, SetBuffer, (TfLiteExecutionTask * task, TfLiteIoType io, const char* name, TfLiteBufferHandle h),
        kTfLiteError)
NO_TASK(TfLiteStatus, SetBufferByIndex, (TfLiteExecutionTask * task, int i, TfLiteBufferHandle h), kTfLiteError)
NO_TASK(TfLiteBufferHandle, GetBufferByName, (const TfLiteExecutionTask* task, TfLiteIoType io, const char* name),
        kTfLiteNullBufferHandle)
NO_TASK(TfLiteBufferHandle, GetBufferByIndex, (const TfLiteExecutionTask* task, int i), kTfLiteNullBufferHandle)
NO_TASK(TfLiteStatus, SetSync,
        (TfLiteExecutionTask * task, TfLiteIoType io, const char* name, TfLiteSynchronization* sync), kTfLiteError)
NO_TASK(TfLiteStatus, SetSyncByIndex, (TfLiteExecutionTask * task, int i, TfLiteSynchronization* sync), kTfLiteError)
NO_TASK(TfLiteSynchronization*, GetSyncByName, (const TfLiteExecutionTask* task, TfLiteIoType io, const char* name),
        NULL)
NO_TASK(TfLiteSynchronization*, GetSyncByIndex, (const TfLiteExecutionTask* task, int i), NULL)
NO_TASK(void*, GetDelegateExecutionData, (const TfLiteExecutionTask* task, TfLiteAsyncKernel* kernel), NULL)
NO_TASK(void, SetDelegateExecutionData, (TfLiteExecutionTask * task, TfLiteAsyncKernel* kernel, void* data), )
NO_TASK(TfLiteStatus, GetStatus, (const TfLiteExecutionTask* task), kTfLiteError)
NO_TASK(void, SetStatus, (TfLiteExecutionTask * task, TfLiteStatus status), )
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* --- wrapped pointers ---------------------------------------------------------------------------------------------- */

#define WRAPPER(Name)                                                                   \
  struct Name {                                                                         \
    void* ptr;                                                                          \
  };                                                                                    \
  Name* Name##Create(void) { return ow_zeroed(sizeof(Name)); }                          \
  void Name##Delete(Name* wrapper) { ow_release(wrapper); }                             \
  void Name##SetPtr(Name* wrapper, void* ptr) {                                         \
    OW_REQUIRE(wrapper != NULL, );                                                      \
    wrapper->ptr = ptr;                                                                 \
  }                                                                                     \
  void* Name##GetPtr(const Name* wrapper) {                                             \
    OW_REQUIRE(wrapper != NULL, NULL);                                                  \
    return wrapper->ptr;                                                                \
  }
WRAPPER(TfLiteBackendBuffer)
WRAPPER(TfLiteSynchronization)

/* --- attribute maps: lists, as they hold a handful ------------------------------------------------------------------- */

typedef enum { INT, SIZE_T, STRING, BOOL } Kind;

typedef struct Entry {
  struct Entry* next;
  char* custom; /* a key in words, else null */
  uint32_t key;
  Kind kind;
  union {
    int as_int;
    size_t as_size_t;
    const char* as_string; /* the caller's */
    bool as_bool;
  } value;
} Entry;

struct TfLiteAttributeMap {
  TfLiteAttrMapType type;
  Entry* entries;
};

static Entry* entry_of(const TfLiteAttributeMap* map, uint32_t key, const char* custom) {
  Entry* entry = map->entries;
  while (entry != NULL && (custom == NULL ? entry->custom != NULL || entry->key != key
                                          : entry->custom == NULL || strcmp(entry->custom, custom) != 0)) {
    entry = entry->next;
  }
  return entry;
}

static Entry* entry_to_set(TfLiteAttributeMap* map, uint32_t key, const char* custom) {
  Entry* entry = entry_of(map, key, custom);
  if (entry != NULL) return entry;
  entry = ow_zeroed(sizeof *entry);
  if (entry == NULL) return NULL;
  if (custom != NULL) {
    entry->custom = ow_alloc(strlen(custom) + 1);
    if (entry->custom == NULL) {
      ow_release(entry);
      return NULL;
    }
    strcpy(entry->custom, custom);
  }
  entry->key = key;
  entry->next = map->entries;
  return map->entries = entry;
}

TfLiteAttributeMap* TfLiteAttributeMapCreate(TfLiteAttrMapType type) {
  TfLiteAttributeMap* map = ow_zeroed(sizeof *map);
  if (map != NULL) map->type = type;
  return map;
}

static void clear(TfLiteAttributeMap* map) {
  while (map->entries != NULL) {
    Entry* entry = map->entries;
    map->entries = entry->next;
    ow_release(entry->custom);
    ow_release(entry);
  }
}

void TfLiteAttributeMapDelete(TfLiteAttributeMap* map) {
  if (map != NULL) clear(map);
  ow_release(map);
}

bool TfLiteAttributeMapIsBufferAttributeMap(const TfLiteAttributeMap* map) {
  return map != NULL && map->type == kTfLiteAttrMapTypeBuffer;
}

bool TfLiteAttributeMapIsSyncAttributeMap(const TfLiteAttributeMap* map) {
  return map != NULL && map->type == kTfLiteAttrMapTypeSync;
}

void TfLiteAttributeMapCopy(const TfLiteAttributeMap* src, TfLiteAttributeMap* dst) {
  OW_REQUIRE(src != NULL && dst != NULL, );
  if (src == dst) return;
  clear(dst);
  dst->type = src->type;
  for (const Entry* entry = src->entries; entry != NULL; entry = entry->next) {
    Entry* copy = entry_to_set(dst, entry->key, entry->custom);
    if (copy == NULL) return;
    copy->kind = entry->kind;
    copy->value = entry->value;
  }
}

/* Reading and writing one kind of value under a number, and under a word. */
#define ATTRIBUTE(Name, Type, KIND, field)                                                                      \
  static bool get_##field(const TfLiteAttributeMap* map, uint32_t key, const char* custom, Type* value) {       \
    const Entry* entry = map == NULL || value == NULL ? NULL : entry_of(map, key, custom);                      \
    if (entry == NULL || entry->kind != KIND) return false;                                                     \
    *value = entry->value.field;                                                                                \
    return true;                                                                                                \
  }                                                                                                             \
  static bool set_##field(TfLiteAttributeMap* map, uint32_t key, const char* custom, Type value) {              \
    Entry* entry = map == NULL ? NULL : entry_to_set(map, key, custom);                                         \
    if (entry == NULL) return false;                                                                            \
    entry->kind = KIND;                                                                                         \
    entry->value.field = value;                                                                                 \
    return true;                                                                                                \
  }                                                                                                             \
  bool TfLiteAttributeMapGet##Name##Attr(const TfLiteAttributeMap* map, uint32_t key, Type* value) {            \
    return get_##field(map, key, NULL, value);                                                                  \
  }                                                                                                             \
  void TfLiteAttributeMapSet##Name##Attr(TfLiteAttributeMap* map, uint32_t key, Type value) {                   \
    OW_REQUIRE(set_##field(map, key, NULL, value), );                                                           \
  }                                                                                                             \
  bool TfLiteAttributeMapGetCustom##Name##Attr(const TfLiteAttributeMap* map, const char* key, Type* value) {   \
    return key != NULL && get_##field(map, 0, key, value);                                                      \
  }                                                                                                             \
  void TfLiteAttributeMapSetCustom##Name##Attr(TfLiteAttributeMap* map, const char* key, Type value) {          \
    OW_REQUIRE(key != NULL && set_##field(map, 0, key, value), );                                               \
  }
ATTRIBUTE(Int, int, INT, as_int)
ATTRIBUTE(SizeT, size_t, SIZE_T, as_size_t)
ATTRIBUTE(String, const char*, STRING, as_string)
ATTRIBUTE(Bool, bool, BOOL, as_bool)

#define OF_MAP(Name, Type, field, Which, Key, check)                                                              \
  bool TfLiteAttributeMapGet##Name##Which##Attr(const TfLiteAttributeMap* map, Key key, Type* value) {            \
    return check(map) && get_##field(map, (uint32_t)key, NULL, value);                                            \
  }                                                                                                               \
  bool TfLiteAttributeMapSet##Name##Which##Attr(TfLiteAttributeMap* map, Key key, Type value) {                   \
    return check(map) && set_##field(map, (uint32_t)key, NULL, value);                                            \
  }
OF_MAP(SizeT, size_t, as_size_t, Buffer, TfLiteBufferAttrKey, TfLiteAttributeMapIsBufferAttributeMap)
OF_MAP(String, const char*, as_string, Buffer, TfLiteBufferAttrKey, TfLiteAttributeMapIsBufferAttributeMap)
OF_MAP(Bool, bool, as_bool, Buffer, TfLiteBufferAttrKey, TfLiteAttributeMapIsBufferAttributeMap)
OF_MAP(String, const char*, as_string, Sync, TfLiteSynchronizationAttrKey, TfLiteAttributeMapIsSyncAttributeMap)
