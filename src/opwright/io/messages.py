"""Example messages: `train.Example`, `Features`, `Feature`, their lists, and `SequenceExample`.

Lives here: the messages of TensorFlow's example.proto and feature.proto. Not here: their Python interface (message.py),
parsing to tensors (examples.py), fields and their bytes (core/protobuf_wire.py).

    Example           1 features             SequenceExample   1 context   2 feature_lists
    Features          1 feature (map)        FeatureLists      1 feature_list (map)
    Feature           one of 1 bytes_list, 2 float_list, 3 int64_list       FeatureList   1 feature (repeated)
    BytesList, FloatList, Int64List          1 value (repeated; numbers are packed)

Maps are written sorted by key, so that equal messages have equal bytes, as TensorFlow's with deterministic=True.
"""

from __future__ import annotations

from .message import Message, MessageField


class BytesList(Message):
    """Strings: `BytesList(value=[b"a"])`."""

    _fields = {"value": MessageField(1, "bytes")}


class FloatList(Message):
    """Numbers, rounded to float32: `FloatList(value=[0.5])`."""

    _fields = {"value": MessageField(1, "floats")}


class Int64List(Message):
    """Integers: `Int64List(value=[1, 2])`."""

    _fields = {"value": MessageField(1, "ints")}


class Feature(Message):
    """One of `bytes_list`, `float_list`, `int64_list`; `WhichOneof("kind")` returns which."""

    _fields = {
        "bytes_list": MessageField(1, "message", BytesList),
        "float_list": MessageField(2, "message", FloatList),
        "int64_list": MessageField(3, "message", Int64List),
    }
    _one_of = "kind"


class Features(Message):
    """Features by name: `Features(feature={"age": Feature(...)})`."""

    _fields = {"feature": MessageField(1, "map", Feature)}


class Example(Message):
    """A record of features: `Example(features=Features(...))`."""

    _fields = {"features": MessageField(1, "message", Features)}


class FeatureList(Message):
    """Features of the steps of a sequence: `FeatureList(feature=[Feature(...)])`."""

    _fields = {"feature": MessageField(1, "messages", Feature)}


class FeatureLists(Message):
    """Sequences by name: `FeatureLists(feature_list={"tokens": FeatureList(...)})`."""

    _fields = {"feature_list": MessageField(1, "map", FeatureList)}


class SequenceExample(Message):
    """A record of features and sequences: `SequenceExample(context=Features(...), feature_lists=FeatureLists(...))`."""

    _fields = {
        "context": MessageField(1, "message", Features),
        "feature_lists": MessageField(2, "message", FeatureLists),
    }
