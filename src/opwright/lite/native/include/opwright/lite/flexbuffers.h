/* Options of a custom operator, read from C++ by the names of the FlatBuffers project: flexbuffers::GetRoot.

       const flexbuffers::Map m = flexbuffers::GetRoot(reinterpret_cast<const uint8_t*>(buffer), length).AsMap();
       state->alpha = m["alpha"].AsFloat();

   Lives here: reading. Not here: the Builder; where FlatBuffers itself is installed, "flatbuffers/flexbuffers.h" is its
   own header. As there, what is missing or of another kind reads as null, 0 or nothing. No byte outside the buffer is
   read, whatever it holds. */
#ifndef OPWRIGHT_LITE_FLEXBUFFERS_H_
#define OPWRIGHT_LITE_FLEXBUFFERS_H_

#ifndef __cplusplus
#error "flexbuffers.h is for C++: from C, use opwright/flexbuffer.h"
#endif

#include <cstdlib>
#include <string>
#include <vector>

#include "../flexbuffer.h"

namespace flexbuffers {

enum Type {
  FBT_NULL = 0, FBT_INT = 1, FBT_UINT = 2, FBT_FLOAT = 3, FBT_KEY = 4, FBT_STRING = 5, FBT_INDIRECT_INT = 6,
  FBT_INDIRECT_UINT = 7, FBT_INDIRECT_FLOAT = 8, FBT_MAP = 9, FBT_VECTOR = 10, FBT_VECTOR_INT = 11,
  FBT_VECTOR_UINT = 12, FBT_VECTOR_FLOAT = 13, FBT_VECTOR_KEY = 14, FBT_VECTOR_STRING_DEPRECATED = 15,
  FBT_VECTOR_INT2 = 16, FBT_VECTOR_UINT2 = 17, FBT_VECTOR_FLOAT2 = 18, FBT_VECTOR_INT3 = 19, FBT_VECTOR_UINT3 = 20,
  FBT_VECTOR_FLOAT3 = 21, FBT_VECTOR_INT4 = 22, FBT_VECTOR_UINT4 = 23, FBT_VECTOR_FLOAT4 = 24, FBT_BLOB = 25,
  FBT_BOOL = 26, FBT_VECTOR_BOOL = 36
};

inline bool IsFixedTypedVector(Type t) { return t >= FBT_VECTOR_INT2 && t <= FBT_VECTOR_FLOAT4; }
inline bool IsTypedVector(Type t) {
  return (t >= FBT_VECTOR_INT && t <= FBT_VECTOR_STRING_DEPRECATED) || t == FBT_VECTOR_BOOL;
}

class Reference;

/* Bytes inside the buffer. c_str() is "" where no 0 ends them. */
class Bytes {
 public:
  Bytes() : at_(""), size_(0) {}
  Bytes(const char* at, size_t size) : at_(at), size_(size) {}
  size_t size() const { return size_; }
  size_t length() const { return size_; }
  bool IsTheEmptyString() const { return size_ == 0; }
  bool IsTheEmptyBlob() const { return size_ == 0; }
  const char* c_str() const { return at_; }
  std::string str() const { return std::string(at_, size_); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(at_); }

 private:
  const char* at_;
  size_t size_;
};
class String : public Bytes {
 public:
  String() {}
  explicit String(const Bytes& bytes) : Bytes(bytes) {}
};
class Blob : public Bytes {
 public:
  Blob() {}
  explicit Blob(const Bytes& bytes) : Bytes(bytes) {}
};

/* The elements of a list, or the values or names of a map. Lists are of three classes that do not convert to one
   another, as in FlatBuffers' own header: what compiles here compiles there. */
class Elements {
 public:
  size_t size() const { return size_; }
  inline Reference operator[](size_t i) const;

 protected:
  Elements() : buffer_(nullptr), length_(0), list_(), at_(0), size_(0), type_(0) {}
  Elements(const void* buffer, size_t length, OwFlexValue list, size_t at, size_t size, unsigned type)
      : buffer_(buffer), length_(length), list_(list), at_(at), size_(size), type_(type) {}
  friend class Map;
  friend class Reference;

  const void* buffer_;
  size_t length_;
  OwFlexValue list_;
  size_t at_, size_;
  unsigned type_; /* of every element; 0 where each says its own */
};
class Vector : public Elements {
 public:
  Vector() {}
  explicit Vector(const Elements& elements) : Elements(elements) {}
  bool IsTheEmptyVector() const { return size_ == 0; }
};
class TypedVector : public Elements {
 public:
  TypedVector() {}
  explicit TypedVector(const Elements& elements) : Elements(elements) {}
  bool IsTheEmptyVector() const { return size_ == 0; }
  Type ElementType() const { return static_cast<Type>(type_); }
};
class FixedTypedVector : public Elements {
 public:
  FixedTypedVector() {}
  explicit FixedTypedVector(const Elements& elements) : Elements(elements) {}
  bool IsTheEmptyFixedTypedVector() const { return size_ == 0; }
  Type ElementType() const { return static_cast<Type>(type_); }
};

class Map : public Vector {
 public:
  Map() : map_() {}
  Map(const void* buffer, size_t length, OwFlexValue value, OwFlexMap map)
      : Vector(Elements(buffer, length, value, map.at, map.size, 0)), map_(map) {}
  bool IsTheEmptyMap() const { return map_.size == 0; }
  inline Reference operator[](const char* name) const;
  inline Reference operator[](const std::string& name) const;
  Vector Values() const { return *this; }
  TypedVector Keys() const {
    OwFlexValue keys = list_;
    keys.child = map_.key_width;
    return TypedVector(Elements(buffer_, length_, keys, map_.keys, map_.size, OW_FLEX_KEY));
  }

 private:
  OwFlexMap map_;
};

/* A value of any type. */
class Reference {
 public:
  Reference() : buffer_(nullptr), length_(0), value_() {}
  Reference(const void* buffer, size_t length, OwFlexValue value) : buffer_(buffer), length_(length), value_(value) {}

  Type GetType() const { return static_cast<Type>(value_.type); }
  bool IsNull() const { return GetType() == FBT_NULL; }
  bool IsBool() const { return GetType() == FBT_BOOL; }
  bool IsInt() const { return GetType() == FBT_INT || GetType() == FBT_INDIRECT_INT; }
  bool IsUInt() const { return GetType() == FBT_UINT || GetType() == FBT_INDIRECT_UINT; }
  bool IsIntOrUint() const { return IsInt() || IsUInt(); }
  bool IsFloat() const { return GetType() == FBT_FLOAT || GetType() == FBT_INDIRECT_FLOAT; }
  bool IsNumeric() const { return IsIntOrUint() || IsFloat(); }
  bool IsString() const { return GetType() == FBT_STRING; }
  bool IsKey() const { return GetType() == FBT_KEY; }
  bool IsBlob() const { return GetType() == FBT_BLOB; }
  bool IsMap() const { return GetType() == FBT_MAP; }
  bool IsVector() const { return GetType() == FBT_VECTOR || IsMap(); }
  bool IsUntypedVector() const { return GetType() == FBT_VECTOR; }
  bool IsTypedVector() const { return flexbuffers::IsTypedVector(GetType()); }
  bool IsFixedTypedVector() const { return flexbuffers::IsFixedTypedVector(GetType()); }
  bool IsAnyVector() const { return IsVector() || IsTypedVector() || IsFixedTypedVector(); }

  /* Numbers: a text is read as one, an untyped list gives how many elements it has, other lists and maps 0. */
  int64_t AsInt64() const {
    int64_t whole = 0;
    double real = 0;
    if (IsUInt()) return static_cast<int64_t>(AsUInt64());
    switch (Number(&whole, &real)) {
      case kWhole:
        return whole;
      case kReal: /* what does not fit is 0: to convert it would be undefined */
        return real >= -9223372036854775808.0 && real < 9223372036854775808.0 ? static_cast<int64_t>(real) : 0;
      default:
        if (IsString() || IsKey()) return std::strtoll(Text().c_str(), nullptr, 10);
        return IsUntypedVector() ? static_cast<int64_t>(List().size()) : 0;
    }
  }
  uint64_t AsUInt64() const {
    uint64_t bits;
    OwFlexValue value = value_;
    if (GetType() == FBT_INDIRECT_UINT) {
      if (!ow_flex_follow_(buffer_, length_, value.at, value.width, &value.at)) return 0;
      value.width = value.child;
    }
    if (IsUInt()) return ow_flex_bits_(buffer_, length_, value.at, value.width, &bits) ? bits : 0;
    if (IsString() || IsKey()) return std::strtoull(Text().c_str(), nullptr, 10);
    return static_cast<uint64_t>(AsInt64());
  }
  double AsDouble() const {
    int64_t whole = 0;
    double real = 0;
    if (IsUInt()) return static_cast<double>(AsUInt64());
    switch (Number(&whole, &real)) {
      case kWhole:
        return static_cast<double>(whole);
      case kReal:
        return real;
      default:
        if (IsString() || IsKey()) return std::strtod(Text().c_str(), nullptr);
        return IsUntypedVector() ? static_cast<double>(List().size()) : 0;
    }
  }
  int32_t AsInt32() const { return static_cast<int32_t>(AsInt64()); }
  int16_t AsInt16() const { return static_cast<int16_t>(AsInt64()); }
  int8_t AsInt8() const { return static_cast<int8_t>(AsInt64()); }
  uint32_t AsUInt32() const { return static_cast<uint32_t>(AsUInt64()); }
  uint16_t AsUInt16() const { return static_cast<uint16_t>(AsUInt64()); }
  uint8_t AsUInt8() const { return static_cast<uint8_t>(AsUInt64()); }
  float AsFloat() const { return static_cast<float>(AsDouble()); }
  bool AsBool() const { return AsUInt64() != 0; } /* 0.5 is false, as there */

  String AsString() const { return IsString() ? String(Text()) : String(); }
  const char* AsKey() const { return IsKey() || IsString() ? Text().c_str() : ""; }
  Blob AsBlob() const { return IsBlob() || IsString() ? Blob(Text()) : Blob(); }
  Vector AsVector() const { return IsVector() ? Vector(List()) : Vector(); }
  TypedVector AsTypedVector() const { return IsTypedVector() ? TypedVector(List()) : TypedVector(); }
  FixedTypedVector AsFixedTypedVector() const {
    return IsFixedTypedVector() ? FixedTypedVector(List()) : FixedTypedVector();
  }
  Map AsMap() const {
    OwFlexMap map;
    return IsMap() && ow_flex_map_(buffer_, length_, value_, &map) ? Map(buffer_, length_, value_, map) : Map();
  }

  /* A text as it is, a number in figures. */
  std::string ToString() const {
    if (IsString() || IsKey()) return Text().str();
    if (IsBool()) return AsBool() ? "true" : "false";
    if (IsFloat()) return std::to_string(AsDouble());
    if (IsUInt()) return std::to_string(AsUInt64());
    if (IsInt()) return std::to_string(AsInt64());
    return IsNull() ? "null" : IsMap() ? "{...}" : IsBlob() ? "(blob)" : "[...]";
  }

 private:
  enum Kind { kNone, kWhole, kReal };
  Kind Number(int64_t* whole, double* real) const {
    int is_real = 0;
    if (buffer_ == nullptr || !ow_flex_number_(buffer_, length_, value_, &is_real, real, whole)) return kNone;
    return is_real != 0 ? kReal : kWhole;
  }
  Bytes Text() const {
    const char* text = nullptr;
    size_t size = 0;
    if (buffer_ == nullptr || !ow_flex_bytes_(buffer_, length_, value_, &text, &size)) return Bytes();
    const char* end = static_cast<const char*>(buffer_) + length_;
    return IsBlob() || (text + size < end && text[size] == 0) ? Bytes(text, size) : Bytes();
  }
  Elements List() const {
    size_t at, size;
    unsigned type;
    if (!IsAnyVector() || !ow_flex_list_(buffer_, length_, value_, &at, &size, &type)) return Elements();
    return Elements(buffer_, length_, value_, at, size, type);
  }

  const void* buffer_;
  size_t length_;
  OwFlexValue value_;
};

inline Reference Elements::operator[](size_t i) const {
  if (i >= size_) return Reference();
  return Reference(buffer_, length_, ow_flex_element_(buffer_, list_, at_, size_, type_, i));
}

inline Reference Map::operator[](const char* name) const {
  OwFlexValue value;
  if (!ow_flex_in_map_(buffer_, length_, map_, name, &value)) return Reference();
  return Reference(buffer_, length_, value);
}
inline Reference Map::operator[](const std::string& name) const { return (*this)[name.c_str()]; }

inline Reference GetRoot(const uint8_t* buffer, size_t size) {
  OwFlexValue value;
  return ow_flex_root_(buffer, size, &value) ? Reference(buffer, size, value) : Reference();
}
inline Reference GetRoot(const std::vector<uint8_t>& buffer) { return GetRoot(buffer.data(), buffer.size()); }

}  // namespace flexbuffers

#endif
