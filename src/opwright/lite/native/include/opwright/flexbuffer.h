/* Options of a custom operator, read from C: a FlexBuffers map of names, as converters write it.

       double alpha = 0.1;
       ow_flex_double(buffer, length, "alpha", &alpha);        keeps 0.1 where there is no such option

   Each function gives 1 and writes the value where the map has that name with a value of that kind, and gives 0
   otherwise. No byte outside the buffer is read, whatever it holds. Nothing is allocated or copied.
   Numbers convert: whole ones to double, true and false to 1 and 0; a double that is no whole number is no integer. */
#ifndef OPWRIGHT_FLEXBUFFER_H_
#define OPWRIGHT_FLEXBUFFER_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  OW_FLEX_INT = 1, OW_FLEX_UINT = 2, OW_FLEX_FLOAT = 3, OW_FLEX_KEY = 4, OW_FLEX_STRING = 5,
  OW_FLEX_INDIRECT_INT = 6, OW_FLEX_INDIRECT_UINT = 7, OW_FLEX_INDIRECT_FLOAT = 8, OW_FLEX_MAP = 9,
  OW_FLEX_VECTOR = 10, OW_FLEX_VECTOR_INT = 11, OW_FLEX_VECTOR_UINT = 12, OW_FLEX_VECTOR_FLOAT = 13,
  OW_FLEX_VECTOR_KEY = 14, OW_FLEX_FIRST_FIXED = 16, OW_FLEX_BLOB = 25, OW_FLEX_BOOL = 26, OW_FLEX_VECTOR_BOOL = 36
};

/* A value: at which place of the buffer, in how many bytes, of what type; child: bytes of what it points to. */
typedef struct OwFlexValue {
  size_t at;
  unsigned width, type, child;
} OwFlexValue;

static inline int ow_flex_bits_(const void* buffer, size_t length, size_t at, unsigned width, uint64_t* bits) {
  const unsigned char* bytes = (const unsigned char*)buffer;
  *bits = 0;
  if (at > length || width > length - at) return 0;
  for (unsigned i = 0; i < width; ++i) *bits |= (uint64_t)bytes[at + i] << (8 * i);
  return 1;
}

/* The place that an offset at a place points back to. */
static inline int ow_flex_follow_(const void* buffer, size_t length, size_t at, unsigned width, size_t* target) {
  uint64_t back;
  if (!ow_flex_bits_(buffer, length, at, width, &back) || back > at) return 0;
  *target = at - (size_t)back;
  return 1;
}

static inline OwFlexValue ow_flex_value_(size_t at, unsigned width, unsigned packed) {
  OwFlexValue value;
  value.at = at, value.width = width, value.type = packed >> 2, value.child = 1u << (packed & 3);
  return value;
}

/* How many elements stand at a place, in front of which their number stands. */
static inline int ow_flex_size_(const void* buffer, size_t length, size_t at, unsigned width, size_t* size) {
  uint64_t bits;
  if (at < width || !ow_flex_bits_(buffer, length, at - width, width, &bits)) return 0;
  if (bits > (length - at) / width) return 0;
  *size = (size_t)bits;
  return 1;
}

/* The value that the buffer is. */
static inline int ow_flex_root_(const void* buffer, size_t length, OwFlexValue* value) {
  const unsigned char* bytes = (const unsigned char*)buffer;
  if (buffer == NULL || length < 3) return 0;
  const unsigned width = bytes[length - 1];
  if ((width != 1 && width != 2 && width != 4 && width != 8) || length < 2 + width) return 0;
  *value = ow_flex_value_(length - 2 - width, width, bytes[length - 2]);
  return 1;
}

/* A map's parts: its values and their number, its keys and the bytes of each. */
typedef struct OwFlexMap {
  size_t at, size, keys;
  unsigned width, key_width;
} OwFlexMap;

static inline int ow_flex_map_(const void* buffer, size_t length, OwFlexValue value, OwFlexMap* map) {
  uint64_t key_width;
  size_t count;
  const unsigned width = map->width = value.child;
  if (value.type != OW_FLEX_MAP || !ow_flex_follow_(buffer, length, value.at, value.width, &map->at)) return 0;
  if (map->at < 3 * width || !ow_flex_size_(buffer, length, map->at, width, &map->size)) return 0;
  if (!ow_flex_bits_(buffer, length, map->at - 2 * width, width, &key_width)) return 0;
  if (key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8) return 0;
  map->key_width = (unsigned)key_width;
  if (!ow_flex_follow_(buffer, length, map->at - 3 * width, width, &map->keys)) return 0;
  if (!ow_flex_size_(buffer, length, map->keys, map->key_width, &count) || count < map->size) return 0;
  return length - map->at - map->size * width >= map->size; /* a byte of type for each */
}

/* The value under a name of a map. */
static inline int ow_flex_in_map_(const void* buffer, size_t length, OwFlexMap map, const char* name,
                                  OwFlexValue* value) {
  const unsigned char* bytes = (const unsigned char*)buffer;
  const size_t wanted = strlen(name) + 1; /* its end, 0, with it */
  size_t key;
  for (size_t i = 0; i < map.size; ++i) {
    if (!ow_flex_follow_(buffer, length, map.keys + i * map.key_width, map.key_width, &key)) return 0;
    if (wanted <= length - key && memcmp(bytes + key, name, wanted) == 0) {
      *value = ow_flex_value_(map.at + i * map.width, map.width, bytes[map.at + map.size * map.width + i]);
      return 1;
    }
  }
  return 0;
}

/* The value under a name of the map that the buffer holds. */
static inline int ow_flex_find(const void* buffer, size_t length, const char* name, OwFlexValue* value) {
  OwFlexValue root;
  OwFlexMap map;
  return ow_flex_root_(buffer, length, &root) && ow_flex_map_(buffer, length, root, &map) &&
         ow_flex_in_map_(buffer, length, map, name, value);
}

/* A number: *is_float says which of the two holds it. */
static inline int ow_flex_number_(const void* buffer, size_t length, OwFlexValue value, int* is_float, double* real,
                                  int64_t* whole) {
  uint64_t bits;
  if (value.type >= OW_FLEX_INDIRECT_INT && value.type <= OW_FLEX_INDIRECT_FLOAT) {
    if (!ow_flex_follow_(buffer, length, value.at, value.width, &value.at)) return 0;
    value.width = value.child;
    value.type -= OW_FLEX_INDIRECT_INT - OW_FLEX_INT;
  }
  if (!ow_flex_bits_(buffer, length, value.at, value.width, &bits)) return 0;
  *is_float = value.type == OW_FLEX_FLOAT;
  if (value.type == OW_FLEX_FLOAT) {
    float narrow;
    uint32_t narrow_bits = (uint32_t)bits;
    if (value.width == 8) {
      memcpy(real, &bits, sizeof *real);
    } else if (value.width == 4) {
      memcpy(&narrow, &narrow_bits, sizeof narrow);
      *real = (double)narrow;
    } else {
      return 0;
    }
    return 1;
  }
  if (value.type == OW_FLEX_INT) {
    const unsigned unused = 64 - 8 * value.width;
    *whole = (int64_t)(bits << unused) >> unused;
  } else if (value.type == OW_FLEX_BOOL) {
    *whole = bits != 0;
  } else if (value.type == OW_FLEX_UINT && bits <= (uint64_t)INT64_MAX) {
    *whole = (int64_t)bits;
  } else {
    return 0;
  }
  return 1;
}

static inline int ow_flex_as_double_(const void* buffer, size_t length, OwFlexValue value, double* out) {
  int is_float;
  int64_t whole = 0;
  double real = 0;
  if (!ow_flex_number_(buffer, length, value, &is_float, &real, &whole)) return 0;
  *out = is_float ? real : (double)whole;
  return 1;
}

static inline int ow_flex_as_int_(const void* buffer, size_t length, OwFlexValue value, int64_t* out) {
  int is_float;
  int64_t whole = 0;
  double real = 0;
  if (!ow_flex_number_(buffer, length, value, &is_float, &real, &whole)) return 0;
  if (is_float) {
    if (!(real >= -9007199254740992.0 && real <= 9007199254740992.0) || (double)(int64_t)real != real) return 0;
    whole = (int64_t)real;
  }
  *out = whole;
  return 1;
}

static inline int ow_flex_double(const void* buffer, size_t length, const char* name, double* out) {
  OwFlexValue value;
  return ow_flex_find(buffer, length, name, &value) && ow_flex_as_double_(buffer, length, value, out);
}

static inline int ow_flex_float(const void* buffer, size_t length, const char* name, float* out) {
  double wide;
  if (!ow_flex_double(buffer, length, name, &wide)) return 0;
  *out = (float)wide;
  return 1;
}

static inline int ow_flex_int64(const void* buffer, size_t length, const char* name, int64_t* out) {
  OwFlexValue value;
  return ow_flex_find(buffer, length, name, &value) && ow_flex_as_int_(buffer, length, value, out);
}

static inline int ow_flex_int(const void* buffer, size_t length, const char* name, int* out) {
  int64_t wide;
  if (!ow_flex_int64(buffer, length, name, &wide) || wide != (int64_t)(int)wide) return 0;
  *out = (int)wide;
  return 1;
}

static inline int ow_flex_bytes_(const void* buffer, size_t length, OwFlexValue value, const char** out, size_t* size) {
  size_t at;
  if (value.type != OW_FLEX_KEY && value.type != OW_FLEX_STRING && value.type != OW_FLEX_BLOB) return 0;
  if (!ow_flex_follow_(buffer, length, value.at, value.width, &at)) return 0;
  const char* start = (const char*)buffer + at;
  if (value.type == OW_FLEX_KEY) {
    const void* end = memchr(start, 0, length - at);
    if (end == NULL) return 0;
    *size = (size_t)((const char*)end - start);
  } else {
    uint64_t bits;
    if (at < value.child || !ow_flex_bits_(buffer, length, at - value.child, value.child, &bits)) return 0;
    if (bits > length - at) return 0;
    *size = (size_t)bits;
  }
  *out = start;
  return 1;
}

/* Bytes of a string, a key or a blob, inside the buffer; a string has a 0 behind its length. */
static inline int ow_flex_string(const void* buffer, size_t length, const char* name, const char** out, size_t* size) {
  OwFlexValue value;
  return ow_flex_find(buffer, length, name, &value) && ow_flex_bytes_(buffer, length, value, out, size);
}

/* Where a list stands, how many elements it has, and of what type all are: 0 where each says its own. */
static inline int ow_flex_list_(const void* buffer, size_t length, OwFlexValue value, size_t* at, size_t* size,
                                unsigned* type) {
  const unsigned fixed = value.type - OW_FLEX_FIRST_FIXED; /* 2, 3 or 4 elements, each of three types */
  if (!ow_flex_follow_(buffer, length, value.at, value.width, at)) return 0;
  if (fixed < 9) {
    *size = fixed / 3 + 2;
    *type = fixed % 3 + OW_FLEX_INT;
    return *size <= (length - *at) / value.child;
  }
  if (!ow_flex_size_(buffer, length, *at, value.child, size)) return 0;
  if (value.type == OW_FLEX_VECTOR || value.type == OW_FLEX_MAP) {
    *type = 0;
    return length - *at - *size * value.child >= *size; /* a byte of type for each */
  }
  *type = value.type == OW_FLEX_VECTOR_BOOL ? (unsigned)OW_FLEX_BOOL : value.type - OW_FLEX_VECTOR_INT + OW_FLEX_INT;
  return value.type == OW_FLEX_VECTOR_BOOL || (value.type >= OW_FLEX_VECTOR_INT && value.type < OW_FLEX_FIRST_FIXED);
}

static inline OwFlexValue ow_flex_element_(const void* buffer, OwFlexValue list, size_t at, size_t size, unsigned type,
                                           size_t i) {
  const unsigned packed = type != 0 ? type << 2 : ((const unsigned char*)buffer)[at + size * list.child + i];
  return ow_flex_value_(at + i * list.child, list.child, packed);
}

/* The numbers of a list. Gives 1 and their count where there is such a list; writes the first `most` of them. */
static inline int ow_flex_doubles(const void* buffer, size_t length, const char* name, double* out, size_t most,
                                  size_t* count) {
  OwFlexValue value;
  size_t at, size;
  unsigned type;
  if (!ow_flex_find(buffer, length, name, &value) || value.type == OW_FLEX_MAP) return 0;
  if (!ow_flex_list_(buffer, length, value, &at, &size, &type)) return 0;
  for (size_t i = 0; i < size && i < most; ++i) {
    if (!ow_flex_as_double_(buffer, length, ow_flex_element_(buffer, value, at, size, type, i), out + i)) return 0;
  }
  *count = size;
  return 1;
}

#endif
