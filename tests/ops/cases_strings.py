"""Rows for strings.

Lives here: rows for ops/strings.  Not here: strings in operators of any dtype (cases_array.py).
"""

from __future__ import annotations

import numpy as np
from harness import bad, case, f32, i32, strings

SHAPE_DEPENDS_ON_DATA = {"StringSplit", "BytesSplit", "UnicodeDecode", "UnicodeDecodeRows"}


def words(*values):
    """Text or bytes, nested or not, as an object array of bytes."""
    array = np.array(values, object)
    flat = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
    made = np.empty(len(flat), object)
    made[:] = flat
    return made.reshape(array.shape)


def word(value):
    return words(value).reshape(())


BROKEN = b"\xff\xc3"  # not UTF-8

# fmt: off
CASES = {
    "StringJoin": [
        case([words("a", "b"), words("c", "d")], expect=[b"ac", b"bd"]),
        case([word("x"), words("c", ""), word("y")], separator="-", expect=[b"x-c-y", b"x--y"]),
        case([strings(2, 3), strings(2, 3)], expect=lambda v: v[0] + v[1]),
        bad([words("a", "b"), words("a")], says=("input 1", "do not match")),
    ],
    "StringLower": [
        case(words("AbC1", "ÄÖ", BROKEN + b"X"), expect=[b"abc1", "ÄÖ".encode(), BROKEN + b"x"]),
        case(words("ÄÖ", BROKEN), encoding="utf-8", expect=["äö".encode(), BROKEN]),
        bad(words("a"), says="encoding", encoding="latin-1"),
        bad(f32(1), says="dtype"),
    ],
    "StringUpper": [
        case(words("AbC1", "äö"), expect=[b"ABC1", "äö".encode()]),
        case(words("äö"), encoding="utf-8", expect=["ÄÖ".encode()]),
    ],
    "StringStrip": [case(words(["  a b\t\n", ""], ["\x0b\x0cx", " y"]), expect=words(["a b", ""], ["x", "y"]))],
    "StringLength": [
        case(words("", "abc", "äx"), expect=np.array([0, 3, 3]), gives="int32"),
        case(words("", "äx", "€😀"), unit="UTF8_CHAR", expect=np.array([0, 2, 2])),
        bad(words("a"), says="unit", unit="WORD"),
    ],
    "Substr": [
        case(words("Hello", "World"), np.int32(1), np.int32(3), expect=[b"ell", b"orl"]),
        case(words("ten", "eleven"), np.array([-2, 5]), np.array([9, 1]), expect=[b"en", b"n"]),
        case(word("thirteen"), np.array([1, 8], np.int32), np.array([5, 2], np.int32), expect=[b"hirte", b""]),
        case(words("aäöb"), np.int32(1), np.int32(2), unit="UTF8_CHAR", expect=["äö".encode()]),
        case(words("hello"), np.int32(1), np.int32(-1), expect=[b"ello"]),
        bad(words("abc"), np.int32(4), np.int32(1), says="pos 4 out of range"),
        bad(words("abc"), np.int32(-4), np.int32(1), says="pos -4 out of range"),
    ],
    "RegexReplace": [
        case(words("a1b22", "none"), word("[0-9]+"), word("<\\0>"), expect=[b"a<1>b<22>", b"none"]),
        case(words("a1b22"), word("([a-z])([0-9])"), word("\\2\\1\\\\"), replace_global=False, expect=[b"1a\\b22"]),
        case(words("äö", BROKEN), word("."), word("x"), expect=[b"xx", b"xx"]),
        case(words("AbC1 é!?"), word("\\p{Ll}"), word("."), expect=[b"A.C1 .!?"]),
        case(words("AbC1 é!?"), word("[\\pL1]"), word("."), expect=[b".... .!?"]),
        case(words("AbC1 é!?"), word("\\P{L}"), word("."), expect=["AbC..é..".encode()]),
        case(words("ab1-[x]"), word("[^[:alpha:]-]"), word("."), expect=[b"ab.-.x."]),
        case(words("a.b*c"), word("\\Q.b*\\E"), word("_"), expect=[b"a_c"]),
        case(words("a]b["), word("[][]"), word("_"), expect=[b"a_b_"]),
        case(words("a1 b"), word("[[:^digit:]]\\z"), word("_"), expect=[b"a1 _"]),
        bad(words("a"), word("("), word(""), says="Invalid pattern"),
        bad(words("a"), word("\\p{Xx}"), word(""), says="Invalid pattern"),
        bad(words("a"), word("a"), word("\\1"), says="Invalid rewrite"),
    ],
    "RegexFullMatch": [
        case(words("abc", "abcd", "ABC"), word("[a-c]+"), expect=np.array([True, False, False])),
        case(words("٣", "3"), word("\\d"), expect=np.array([False, True])),
        bad(words("a"), word("["), says="Invalid pattern"),
    ],
    "AsString": [
        case(np.array([0, -7, 42], np.int32), expect=[b"0", b"-7", b"42"]),
        case(np.array([3.14159, -1e10, np.inf], np.float32), expect=[b"3.141590", b"-10000000000.000000", b"inf"]),
        case(np.array([3.14159, 1e-10]), precision=2, expect=[b"3.14", b"0.00"]),
        case(np.array([3.14159, 1e-10]), scientific=True, precision=1, expect=[b"3.1e+00", b"1.0e-10"]),
        case(np.array([3.5, 1e-10]), shortest=True, expect=[b"3.5", b"1e-10"]),
        case(np.array([7], np.int64), width=4, fill="0", expect=[b"0007"]),
        case(np.array([7], np.int64), width=4, expect=[b"   7"]),
        case(np.array([7], np.int64), width=4, fill="-", expect=[b"7   "]),
        case(np.array([7], np.uint8), fill="+", expect=[b"+7"]),
        case(np.array([True, False]), expect=[b"true", b"false"]),
        case(np.array([1 + 2j], np.complex64), precision=1, expect=[b"(1.0,2.0)"]),
        case(np.array([1 + 2j], np.complex64), precision=1, width=6, fill="0", expect=[b"(0001.0,0002.0)"]),
        bad(i32(2), says="int32", precision=2),
        bad(f32(2), says="both", scientific=True, shortest=True),
        bad(f32(2), says="fill", fill="x"),
    ],
    "StringToNumber": [
        case(words("1.5", " -2e3 ", "inf", "0x10"), expect=np.array([1.5, -2000, np.inf, 16]), gives="float32"),
        case(words("12", "-3"), out_type="int64", expect=np.array([12, -3]), gives="int64"),
        bad(words("abc"), says="could not correctly convert string: abc"),
        bad(words("1_0"), says="could not correctly"),
        bad(words("3000000000"), says="int32", out_type="int32"),
        bad(words("1"), says="out_type", out_type="bool"),
    ],
    "StringToHashBucket": [
        case(words("Hello", "TensorFlow", "2.x"), num_buckets=3, expect=np.array([2, 0, 1]), gives="int64"),
        bad(words("a"), says="num_buckets", num_buckets=0),
    ],
    "StringFormat": [
        case([np.arange(9, dtype=np.int32), f32(2) * 0 + np.float32(0.1)], template="a {} b {}.", placeholder="{}",
             expect=b"a [0 1 2 ... 6 7 8] b [0.1 0.1]."),
        case([words("x", 'a"b')], template="%s", expect=b'["x" "a\\"b"]'),
        case([np.array([[True], [False]])], template="%s", summarize=1, expect=b"[[1]\n [0]]"),
        case([np.array(1 + 2j)], template="%s", expect=b"(1,2)"),
    ],
    "strings.format": [
        case("<{}>", np.arange(3), expect=b"<[0 1 2]>"),
        bad("{} {}", np.arange(3), raises=ValueError, says="The template expects 2 tensors"),
    ],
    "StringToHashBucketFast": [
        # as TensorFlow 2.21 gives them: of each number of bytes for which the fingerprint goes another way
        case(words("", "a", "Hello", "x" * 8, "y" * 16, "z" * 17, "w" * 32, "v" * 33, "u" * 64, "t" * 65, "s" * 128,
                   "r" * 129, "q" * 300, "héllo"), num_buckets=1 << 62, gives="int64",
             expect=np.array([1936946117179621455, 3694432073954588131, 1569640939275362439, 416454844068956798,
                              4369335550805201834, 2963606906321231264, 3295925585737213163, 52503723650048192,
                              2984669881831571891, 203880748424968752, 4251668731483955347, 4233010728707922025,
                              378588157704204776, 3262255192197256439])),
        case(words("a", "b"), num_buckets=1, expect=np.array([0, 0])),
        bad(words("a"), says="num_buckets", num_buckets=0),
    ],
    "UnicodeScript": [
        # as TensorFlow 2.21 gives them
        case(np.array([1, 31, 65, 0x3B1, 0x410, 0x5D0, 0x627, 0x905, 0x4E00, 0x3042, 0x30A2, 0xAC00, 0x1F600, 0x300, -1,
                       0x110000, 0xD800, 0x378], np.int32),
             expect=np.array([0, 0, 25, 14, 8, 19, 2, 10, 17, 20, 22, 18, 0, 1, -1, -1, 103, 103], np.int32)),
        case(np.array(0x10FFFF, np.int32), expect=np.array(103, np.int32)),
        case(np.zeros((0, 2), np.int32), expect=np.zeros((0, 2), np.int32)),
        bad(np.array([1], np.int64), says="dtype"),
    ],
    "StringNGrams": [
        case(words(["a", "b", "c"], ["d", "e", "f"]), ngram_widths=(1, 2),
             expect=words(["a", "b", "c", "a b", "b c"], ["d", "e", "f", "d e", "e f"])),
        case(words("a", "b"), ngram_widths=(3,), expect=words()),
        case(words([], []), ngram_widths=(2,), pad_width=-1, expect=words([], [])),
        bad(words("a")[0:1].reshape(()), ngram_widths=(1,), says="rank>0"),
        bad(words("a"), ngram_widths=(0,), says="ngram_widths"),
    ],
    "strings.ngrams": [
        case(words("a", "b", "c"), 3, expect=words("a b c")),
        case(words("a", "b", "c"), 6, preserve_short_sequences=True, expect=words("a b c")),
        case(words("a", "b", "c"), (6, 2), preserve_short_sequences=True, expect=words("a b", "b c")),
        case(words("a", "b", "c"), 3, separator="-", pad_values="|",
             expect=words("|-|-a", "|-a-b", "a-b-c", "b-c-|", "c-|-|")),
        case(words("a", "b", "c"), 3, pad_values=("<", ">"), padding_width=1, expect=words("< a b", "a b c", "b c >")),
        case(words("a"), 6, pad_values="x", padding_width=1, preserve_short_sequences=True, expect=words("x a x")),
        bad(words("a")[0:1].reshape(()), 2, says="rank>0", raises=ValueError),
        bad(words("a"), 0, says="greater than 0", raises=ValueError),
        bad(words("a"), 2, padding_width=1, says="pad_values must be provided", raises=ValueError),
        bad(words("a"), 2, pad_values="x", padding_width=0, says="padding_width", raises=ValueError),
    ],
    "StringToHashBucketStrong": [
        # as TensorFlow 2.21 gives them
        case(words("Hello", "TensorFlow", "2.x", "", "a" * 50), num_buckets=1000, key=[1, 2],
             expect=np.array([274, 926, 778, 435, 608]), gives="int64"),
        bad(words("a"), says="num_buckets", num_buckets=0, key=[1, 2]),
        bad(words("a"), says="key", num_buckets=2, key=[1]),
    ],
    "UnicodeTranscode": [
        case(words("aé".encode("latin-1"), b"x"), input_encoding="latin-1", output_encoding="UTF-8",
             expect=["aé".encode(), b"x"]),
        case(words(b"a\xffb\x01"), input_encoding="UTF-8", output_encoding="UTF-8", expect=["a\ufffdb\x01".encode()]),
        case(words(b"a\xffb\x01"), input_encoding="UTF-8", output_encoding="UTF-16-BE", replace_control_characters=True,
             expect=[b"\x00a\xff\xfd\x00b\xff\xfd"]),
        case(words(b"a\xffb"), input_encoding="UTF-8", output_encoding="UTF-8", errors="ignore", expect=[b"ab"]),
        case(words(b"a\xffb"), input_encoding="UTF-8", output_encoding="UTF-8", replacement_char=32, expect=[b"a b"]),
        bad(words(b"a\xffb"), input_encoding="UTF-8", output_encoding="UTF-8", errors="strict",
             says="Invalid formatting"),
        bad(words("a"), input_encoding="nonsense", output_encoding="UTF-8", says="Could not create converter"),
        bad(words("a"), input_encoding="UTF-8", output_encoding="latin-1", says="output_encoding"),
    ],
    "UnicodeEncode": [
        case(np.int32([97, 233, 8364]), output_encoding="UTF-8", expect="aé€".encode()),
        case(np.int32([[97, 233], [8364, 65]]), output_encoding="UTF-8", expect=["aé".encode(), "€A".encode()]),
        case(np.int32([97, 233, 8364]), output_encoding="UTF-16-BE", expect=b"\x00a\x00\xe9 \xac"),
        case(np.int32([97, 0xD800, 0x110000]), output_encoding="UTF-8", expect="a\ufffd\ufffd".encode()),
        case(np.int32([97, 0xD800]), output_encoding="UTF-8", errors="ignore", expect=b"a"),
        bad(np.int32([0xD800]), output_encoding="UTF-8", errors="strict", says="Code point is out of range"),
        bad(np.int32(5), output_encoding="UTF-8", says="rank"),
    ],
    "UnicodeDecodeRows": [
        case(words("aé", "", "€"), input_encoding="UTF-8",
             expect=[np.array([2, 0, 1]), np.array([97, 233, 8364]), np.array([0, 1, 0])]),
    ],
    "UnicodeDecode": [
        case(word("aé€😀"), input_encoding="UTF-8", expect=[np.array([97, 233, 8364, 128512]), np.array([0, 1, 3, 6])]),
        case(word(b"a\xffb\xc3"), input_encoding="UTF-8",
             expect=[np.array([97, 65533, 98, 65533]), np.array([0, 1, 2, 3])]),
        case(word(b"a\xffb"), input_encoding="UTF-8", errors="ignore", expect=[np.array([97, 98]), np.array([0, 2])]),
        case(word(b"\x00a\xd8\x3d\xde\x00"), input_encoding="UTF-16-BE",
             expect=[np.array([97, 128512]), np.array([0, 2])]),
        case(word(b"\x00\x00\x00a"), input_encoding="UTF-32-BE", expect=[np.array([97]), np.array([0])]),
        case(word(b"a\xe9"), input_encoding="US-ASCII", expect=[np.array([97, 65533]), np.array([0, 1])]),
        case(word(b"\x00a\x01"), input_encoding="UTF-8", replace_control_characters=True,
             expect=[np.array([65533, 97, 65533]), np.array([0, 1, 2])]),
        case(word(""), input_encoding="UTF-8", expect=[np.array([]), np.array([])]),
        bad(word(b"a\xffb"), input_encoding="UTF-8", errors="strict", says="Invalid formatting"),
    ],
    "strings.unicode_decode": [
        case(word("aé"), "UTF-8", expect=np.array([97, 233])),
    ],
    "strings.unicode_decode_with_offsets": [case(word("éa"), "UTF-8", expect=[np.array([233, 97]), np.array([0, 2])])],
    "strings.unicode_split": [case(word("aé€"), "UTF-8", expect=[b"a", "é".encode(), "€".encode()])],
    "strings.unicode_split_with_offsets": [
        case(word(b"a\xffb"), "UTF-8", expect=[[b"a", "\ufffd".encode(), b"b"], np.array([0, 1, 2])]),
    ],
    "UnsortedSegmentJoin": [
        case(words("this", "is", "a", "test"), np.int32([0, 1, 0, 1]), np.int32(2), separator=" ",
             expect=[b"this a", b"is test"]),
        case(words(["a", "b"], ["c", "d"]), np.int32([1, 0]), np.int32(3), separator=":",
             expect=words(["c", "d"], ["a", "b"], ["", ""])),
        bad(words("a", "b"), np.int32([-1, 0]), np.int32(1), says="segment_ids are not allowed"),
        bad(words("a", "b"), np.int32([0, 0, 0]), np.int32(1), says="segment_ids do not number"),
    ],
    "StringSplit": [
        case(words("a b  c", "", "d"), word(""),
             expect=[np.array([[0, 0], [0, 1], [0, 2], [2, 0]]), [b"a", b"b", b"c", b"d"], np.array([3, 3])]),
        case(words("a,,b"), word(","), maxsplit=1,
             expect=[np.array([[0, 0], [0, 1]]), [b"a", b",b"], np.array([1, 2])]),
        case(words(), word(""), expect=[np.zeros((0, 2), int), [], np.array([0, 0])]),
        case(words("", "a b"), word(" "), maxsplit=0,
             expect=[np.array([[0, 0], [1, 0]]), [b"", b"a b"], np.array([2, 1])]),
        bad(word("a"), word(""), says="rank"),
    ],
    "strings.split": [
        case(word("hello world"), expect=[b"hello", b"world"]),
        case(word("a<>b<>"), sep="<>", unknown=False, expect=[b"a", b"b", b""]),
    ],
    "BytesSplit": [case(word("abä"), expect=[b"a", b"b", b"\xc3", b"\xa4"]), case(word(""), expect=[])],
    "strings.bytes_split": [case(word("ab"), unknown=False, expect=[b"a", b"b"])],
    "ReduceJoin": [
        case(words(["a", "b"], ["c", "d"]), axis=[0], expect=[b"ac", b"bd"]),
        case(words(["a", "b"], ["c", "d"]), axis=[-1], separator=".", expect=[b"a.b", b"c.d"]),
        case(words(["a", "b"], ["c", "d"]), axis=[0, 1], expect=word("acbd")),
        case(words(["a", "b"], ["c", "d"]), axis=[1, 0], keep_dims=True, expect=words(["abcd"])),
        case(words(["a", "b"]), axis=[], expect=words(["a", "b"])),
        case(strings(2, 0), axis=[1], expect=[b"", b""]),
        bad(words("a"), says="axis 1", axis=[1]),
    ],
    "strings.reduce_join": [case(words(["a", "b"], ["c", "d"]), separator="-", expect=word("a-b-c-d"))],
    "LookupTableFind": [
        case(words("b", "z", "a", "b"), words("a", "b", "a"), np.array([5, 6, 7]), np.array(-1), gives="int64",
             expect=np.array([6, -1, 5, 6])),
        case(np.array([[3, 1], [2, 9]]), np.array([9, 3]), words("nine", "three"), word("?"),
             expect=words(["three", "?"], ["?", "nine"])),
        case(words(*(f"w{i % 70}" for i in range(90))), words(*(f"w{i}" for i in range(60))),
             np.arange(60, dtype=np.float32) / 4, np.float32(-2),
             expect=np.float32([i % 70 / 4 if i % 70 < 60 else -2 for i in range(90)])),
        case(i32(0), i32(2), np.array([True, False]), np.array(False), expect=np.zeros(0, bool)),
        bad(words("a"), words("a", "b"), np.array([1, 2, 3]), np.array(0), says="differ"),
        bad(f32(2) > 0, f32(2) > 0, np.array([1, 2]), np.array(0), says="dtype"),
    ],
}
