// Windows on the reader of options, by which Python compares it with what FlatBuffers' own writer wrote.
// FLEXBUFFERS: the reader, ours where nothing else is said, so that the result depends on nothing that is installed.
#include <algorithm>
#include <string>

#ifndef FLEXBUFFERS
#define FLEXBUFFERS "opwright/lite/flexbuffers.h"
#endif
#include FLEXBUFFERS

extern "C" {

/* A value of the options by its path, "a/b/3": names of maps and places of lists. */
static flexbuffers::Reference At(const uint8_t* buffer, size_t length, const char* path) {
  flexbuffers::Reference value = flexbuffers::GetRoot(buffer, length);
  const std::string text(path);
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('/', from), text.size());
    const std::string part = text.substr(from, end - from);
    if (value.IsMap()) {
      value = value.AsMap()[part];
    } else if (value.IsAnyVector()) {
      const size_t place = static_cast<size_t>(std::stoul(part));
      value = value.IsUntypedVector() ? value.AsVector()[place]
              : value.IsTypedVector() ? value.AsTypedVector()[place] : value.AsFixedTypedVector()[place];
    }
    from = end + 1;
  }
  return value;
}
int64_t flex_int(const uint8_t* b, size_t n, const char* path) { return At(b, n, path).AsInt64(); }
uint64_t flex_uint(const uint8_t* b, size_t n, const char* path) { return At(b, n, path).AsUInt64(); }
double flex_double(const uint8_t* b, size_t n, const char* path) { return At(b, n, path).AsDouble(); }
int flex_bool(const uint8_t* b, size_t n, const char* path) { return At(b, n, path).AsBool(); }
int flex_type(const uint8_t* b, size_t n, const char* path) { return At(b, n, path).GetType(); }
size_t flex_text(const uint8_t* b, size_t n, const char* path, char* out, size_t room) {
  const std::string text = At(b, n, path).ToString();
  text.copy(out, room);
  return text.size();
}
/* Every value there is, added up: whatever the buffer holds, and only as deep as it goes. */
static double Sum(const flexbuffers::Reference& value, int depth) {
  double sum = value.AsDouble() + static_cast<double>(value.AsString().size() + value.AsBlob().size());
  if (depth == 0) return sum;
  const flexbuffers::Vector list = value.AsVector();
  for (size_t i = 0; i < list.size() && i < 8; ++i) sum += Sum(list[i], depth - 1);
  const flexbuffers::TypedVector typed = value.AsTypedVector();
  for (size_t i = 0; i < typed.size() && i < 8; ++i) sum += Sum(typed[i], depth - 1);
  const flexbuffers::TypedVector names = value.AsMap().Keys();
  for (size_t i = 0; i < names.size() && i < 8; ++i) {
    sum += Sum(value.AsMap()[names[i].AsKey()], 0) + static_cast<double>(std::string(names[i].AsKey()).size());
  }
  return sum;
}
double flex_sum(const uint8_t* b, size_t n) { return Sum(flexbuffers::GetRoot(b, n), 3); }

}
