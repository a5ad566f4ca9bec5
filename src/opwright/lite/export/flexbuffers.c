/* Options of a node: a FlexBuffer map, read with every position checked against its end.
 * Format: FlexBuffers internals, flatbuffers.dev/internals. The bytes come from a file: nothing is taken on trust. */

enum { /* types of values; of those between, vectors, none is an option here */
  OW_FLEX_NULL = 0, OW_FLEX_INT = 1, OW_FLEX_UINT = 2, OW_FLEX_FLOAT = 3, OW_FLEX_KEY = 4, OW_FLEX_STRING = 5,
  OW_FLEX_INDIRECT_INT = 6, OW_FLEX_INDIRECT_UINT = 7, OW_FLEX_INDIRECT_FLOAT = 8, OW_FLEX_MAP = 9, OW_FLEX_BLOB = 25,
  OW_FLEX_BOOL = 26
};

typedef enum ow_found { OW_FINE, OW_OTHER_TYPE, OW_DAMAGED } ow_found;

typedef struct ow_bytes {
  const uint8_t *data;
  size_t size;
} ow_bytes;

/* A value: where it is, how many bytes it has, its type, and the bytes of what it leads to, if it is an offset. */
typedef struct ow_value {
  size_t at, width;
  unsigned type;
  size_t child;
} ow_value;

/* A map of n entries: where its values and the offsets of its keys are, how many bytes each has. */
typedef struct ow_map {
  size_t n, values, width, keys, key_width;
} ow_map;

static inline bool ow_unsigned_at(ow_bytes b, size_t at, size_t width, uint64_t *found) {
  if (at > b.size || width > b.size - at) return false;
  *found = 0;
  for (size_t i = width; i-- > 0;) *found = *found << 8 | b.data[at + i];
  return true;
}

/* Where an offset leads to: so many bytes back. */
static inline bool ow_target(ow_bytes b, size_t at, size_t width, size_t *found) {
  uint64_t back;
  if (!ow_unsigned_at(b, at, width, &back) || back > at) return false;
  *found = at - (size_t)back;
  return true;
}

static inline ow_value ow_value_of(size_t at, size_t width, uint8_t packed) {
  ow_value v;
  v.at = at;
  v.width = width;
  v.type = packed >> 2;
  v.child = (size_t)1 << (packed & 3);
  return v;
}

static inline bool ow_root(ow_bytes b, ow_value *root) {
  if (b.size < 3) return false;
  const size_t width = b.data[b.size - 1];
  if ((width != 1 && width != 2 && width != 4 && width != 8) || width > b.size - 2) return false;
  *root = ow_value_of(b.size - 2 - width, width, b.data[b.size - 2]);
  return true;
}

static inline bool ow_open_map(ow_bytes b, ow_value v, ow_map *map) {
  uint64_t n, key_width, keys;
  map->width = v.child;
  if (!ow_target(b, v.at, v.width, &map->values) || map->values < 3 * v.child) return false;
  if (!ow_unsigned_at(b, map->values - v.child, v.child, &n) || n > b.size) return false;
  map->n = (size_t)n;
  const size_t slot = map->values - 3 * v.child; /* the offset to the keys, and the bytes that each of theirs has */
  if (!ow_target(b, slot, v.child, &map->keys) || !ow_unsigned_at(b, slot + v.child, v.child, &key_width)) return false;
  if (key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8) return false;
  map->key_width = (size_t)key_width;
  if (map->keys < map->key_width || !ow_unsigned_at(b, map->keys - map->key_width, map->key_width, &keys)) return false;
  /* n is at most the number of bytes, so that neither product overflows */
  return keys == n && map->n * (map->width + 1) <= b.size - map->values && map->n * map->key_width <= b.size - map->keys;
}

/* The name and the value of entry i. */
static inline bool ow_entry(ow_bytes b, const ow_map *map, size_t i, const char **name, ow_value *v) {
  size_t at;
  if (!ow_target(b, map->keys + i * map->key_width, map->key_width, &at) || at >= b.size) return false;
  if (memchr(b.data + at, 0, b.size - at) == NULL) return false;
  *name = (const char *)(b.data + at);
  *v = ow_value_of(map->values + i * map->width, map->width, b.data[map->values + map->n * map->width + i]);
  return true;
}

/* An integer as its bits, and whether they have a sign. */
static inline ow_found ow_integer_bits(ow_bytes b, ow_value v, uint64_t *bits, bool *is_signed) {
  size_t at = v.at, width = v.width;
  if (v.type == OW_FLEX_INDIRECT_INT || v.type == OW_FLEX_INDIRECT_UINT) {
    if (!ow_target(b, v.at, v.width, &at)) return OW_DAMAGED;
    width = v.child;
  } else if (v.type != OW_FLEX_INT && v.type != OW_FLEX_UINT) {
    return OW_OTHER_TYPE;
  }
  *is_signed = v.type == OW_FLEX_INT || v.type == OW_FLEX_INDIRECT_INT;
  if (!ow_unsigned_at(b, at, width, bits)) return OW_DAMAGED;
  if (*is_signed && width < 8 && (*bits >> (8 * width - 1) & 1)) *bits |= ~(uint64_t)0 << (8 * width);
  return OW_FINE;
}

static inline ow_found ow_read_int(ow_bytes b, ow_value v, int64_t *found) {
  uint64_t bits;
  bool is_signed;
  const ow_found how = ow_integer_bits(b, v, &bits, &is_signed);
  if (how != OW_FINE) return how;
  if (!is_signed && bits > INT64_MAX) return OW_OTHER_TYPE;
  *found = (int64_t)bits;
  return OW_FINE;
}

/* @float */
static inline ow_found ow_read_float(ow_bytes b, ow_value v, double *found) {
  uint64_t bits;
  bool is_signed;
  size_t at = v.at, width = v.width;
  if (v.type == OW_FLEX_INDIRECT_FLOAT) {
    if (!ow_target(b, v.at, v.width, &at)) return OW_DAMAGED;
    width = v.child;
  } else if (v.type != OW_FLEX_FLOAT) {
    const ow_found how = ow_integer_bits(b, v, &bits, &is_signed);
    if (how == OW_FINE) *found = is_signed ? (double)(int64_t)bits : (double)bits;
    return how;
  }
  if (!ow_unsigned_at(b, at, width, &bits)) return OW_DAMAGED;
  if (width == 8) {
    memcpy(found, &bits, sizeof *found);
  } else if (width == 4) {
    const uint32_t low = (uint32_t)bits;
    float single;
    memcpy(&single, &low, sizeof single);
    *found = (double)single;
  } else if (width == 2) { /* half precision: 5 bits of exponent, 10 behind the point */
    const int exponent = (int)(bits >> 10 & 31);
    const double rest = (double)(bits & 1023);
    const double size = exponent == 0    ? ldexp(rest, -24)
                        : exponent == 31 ? (rest != 0.0 ? NAN : INFINITY)
                                         : ldexp(rest + 1024.0, exponent - 25);
    *found = bits >> 15 & 1 ? -size : size;
  } else {
    return OW_DAMAGED;
  }
  return OW_FINE;
}

/* @bool */
static inline ow_found ow_read_bool(ow_bytes b, ow_value v, bool *found) {
  double number;
  if (v.type == OW_FLEX_BOOL) {
    uint64_t bits;
    if (!ow_unsigned_at(b, v.at, v.width, &bits)) return OW_DAMAGED;
    *found = bits != 0;
    return OW_FINE;
  }
  const ow_found how = ow_read_float(b, v, &number); /* truth written as a number */
  if (how != OW_FINE) return how;
  if (number != 0.0 && number != 1.0) return OW_OTHER_TYPE;
  *found = number == 1.0;
  return OW_FINE;
}

/* @text */
/* A text: its bytes, which no zero need follow. */
static inline ow_found ow_read_text(ow_bytes b, ow_value v, const char **found, size_t *length) {
  uint64_t n;
  size_t at;
  if (v.type != OW_FLEX_STRING && v.type != OW_FLEX_KEY && v.type != OW_FLEX_BLOB) return OW_OTHER_TYPE;
  if (!ow_target(b, v.at, v.width, &at) || at >= b.size) return OW_DAMAGED;
  if (v.type == OW_FLEX_KEY) {
    const void *end = memchr(b.data + at, 0, b.size - at);
    if (end == NULL) return OW_DAMAGED;
    n = (uint64_t)((const uint8_t *)end - (b.data + at));
  } else if (at < v.child || !ow_unsigned_at(b, at - v.child, v.child, &n) || n > b.size - at) {
    return OW_DAMAGED;
  }
  *found = (const char *)(b.data + at);
  *length = (size_t)n;
  return OW_FINE;
}
