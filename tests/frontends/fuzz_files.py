"""Damaged files of ONNX, PyTorch, Keras and StableHLO: mutants are read, or are an error by name.

    python tests/frontends/fuzz_files.py onnx torch keras stablehlo bytecode --seconds 1200 --first 0

Members of archives and HDF5 files are damaged apart, so that mutants get behind checksums and headers. Each format runs
in processes of its own, with limits of time and memory; a mutant that ends one is a finding, by its number. `torch`
needs PyTorch, and is left out with a note where it is not installed. Not here: places of external data
(test_onnx_fuzz.py), `.tflite` (tests/lite/fuzz).
"""

from __future__ import annotations

import argparse
import base64
import gzip
import importlib.util
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opwright as ow

HERE = Path(__file__).parent
MOST_SECONDS = 20  # of one mutant
MOST_BYTES = 8 << 30  # of address space
BLOCK = 200  # mutants of one process


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return bytes, changed, dropped, repeated or moved at some places."""
    content = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        kind, place, length = draw.randrange(6), draw.randrange(len(content) or 1), draw.randrange(1, 17)
        if kind == 0 and content:
            content[place] = draw.randrange(256)
        elif kind == 1 and content:
            content[place] ^= 1 << draw.randrange(8)
        elif kind == 2 and content:
            content[place] = draw.choice((0, 1, 127, 128, 255))
        elif kind == 3:
            del content[place : place + length]
        elif kind == 4:
            content[place:place] = content[place : place + length]
        else:
            other = draw.randrange(len(content) or 1)
            content[place : place + length] = content[other : other + length]
    return bytes(content)


def edited(text: bytes, draw: random.Random) -> bytes:
    """Return a document of JSON with another value at one place, or a member less."""
    document = json.loads(text)
    places: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        value = stack.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        places += [(value, k) for k in keys]
        stack += [value[k] for k in keys if isinstance(value[k], (dict, list))]
    for _ in range(draw.choice((1, 1, 2))):
        value, key = draw.choice(places)
        other, name = draw.choice(places)
        new = [None, -1, 0, 1 << 40, 3.5, "x", [], {}, True]
        if isinstance(other, dict) and name in other:
            new.append(json.loads(json.dumps(other[name])))
        if isinstance(value, dict) and key in value and not draw.randrange(4):
            del value[key]
        elif isinstance(value, dict) or key < len(value):
            value[key] = draw.choice(new)
    return json.dumps(document).encode()


def restated(data: bytes, draw: random.Random) -> bytes:
    """Return a message of ONNX with other values of some fields, elements more or less, or parts of others; one in
    three is damaged as bytes."""
    if not draw.randrange(3):
        return damaged(data, draw)
    import onnx

    model = onnx.ModelProto.FromString(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        fields: list[tuple[Any, Any]] = []
        stack: list[Any] = [model]
        while stack:
            message = stack.pop()
            for field, value in message.ListFields():
                fields.append((message, field))
                if field.message_type:
                    stack += [value] if hasattr(value, "ListFields") else list(value)
        message, field = draw.choice(fields)
        alike = [getattr(m, f.name) for m, f in fields if f.full_name == field.full_name]
        value, other = getattr(message, field.name), draw.choice(alike)
        if hasattr(value, "ListFields"):
            value.CopyFrom(other)
        elif hasattr(value, "extend"):
            place, kind = draw.randrange(len(value)), draw.randrange(3)
            others = list(other)
            if kind == 0:
                del value[place]
            elif kind == 1 or field.message_type:
                value.extend(others[:1000])
            elif isinstance(value[place], (int, float)):
                value[place] = draw.choice((0, -1, 1, 2, 7, 1 << 20, 1 << 30, -(1 << 30)))
            else:
                value[place] = draw.choice(others)
        elif isinstance(value, int):
            enumerators = field.enum_type and list(field.enum_type.values_by_number)
            setattr(message, field.name, draw.choice(enumerators or (0, 1, 2, 3, 7, 16, 1 << 20, (1 << 31) - 1)))
        elif isinstance(value, bytes):
            setattr(message, field.name, damaged(value, draw))
        else:
            setattr(message, field.name, other)
    return model.SerializeToString()


def archive(data: bytes, draw: random.Random) -> bytes:
    """Return an archive with one damaged member, or damaged as a whole."""
    if not draw.randrange(5):
        return damaged(data, draw)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = draw.choice([n for n in members if members[n]])
    plain = name.endswith(".json") and draw.randrange(3)
    members[name] = edited(members[name], draw) if plain else damaged(members[name], draw)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for member, part in members.items():
            file.writestr(member, part)
    return content.getvalue()


def read_onnx(data: bytes, _: Path) -> None:
    ow.from_onnx(data)


def read_torch(data: bytes, folder: Path) -> None:
    path = folder / "m.pt2"
    path.write_bytes(data)
    ow.from_torch(path)


def read_keras(data: bytes, folder: Path) -> None:
    path = folder / "m.keras"
    path.write_bytes(data)
    ow.from_keras(path)


def read_stablehlo(data: bytes, folder: Path) -> None:
    function = ow.from_stablehlo(data)
    if function.input_signature is not None:  # of known sizes
        function.concrete()


def onnx_seeds() -> list[bytes]:
    """Return models of onnxruntime's operators, quantized ones, and those of `ai.onnx.ml`."""
    import record_contrib_operators as contrib

    files = []
    for name in ("quantized_models", "classical_models"):
        with np.load(HERE / f"{name}.npz") as arrays:
            files += [arrays[key].tobytes() for key in arrays.files if key.endswith(".model")]
    return [*(contrib.model_of(name)[0].SerializeToString() for name in contrib.ROWS), *files]


def torch_seeds() -> list[bytes]:
    """Return the recorded file, and one of a convolution, a norm and attention, of the installed PyTorch."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
            self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
            return self.attention(y, y, y)[0]

    content = io.BytesIO()
    torch.export.save(torch.export.export(Network().eval(), (torch.rand(2, 3, 6, 6),)), content)
    return [(HERE / "linear.pt2").read_bytes(), content.getvalue()]


def keras_seeds() -> list[bytes]:
    return [p.read_bytes() for p in sorted((HERE.parent / "data" / "keras").glob("*.keras"))]


def modules(field: str) -> list[bytes]:
    """Return the recorded modules, as texts or artifacts."""
    record = json.loads(gzip.decompress((HERE / "stablehlo_modules.json.gz").read_bytes()))["modules"]
    return [row["text"].encode() if field == "text" else base64.b64decode(row[field]) for row in record]


FORMATS: dict[str, tuple[Callable[[], list[bytes]], Callable[..., bytes], Callable[[bytes, Path], None]]] = {
    "onnx": (onnx_seeds, restated, read_onnx),
    "torch": (torch_seeds, archive, read_torch),
    "keras": (keras_seeds, archive, read_keras),
    "stablehlo": (lambda: modules("text"), damaged, read_stablehlo),
    "bytecode": (lambda: modules("artifact"), damaged, read_stablehlo),
}
"""By name: files that are damaged, how, and what reads them."""


def block(kind: str, seeds: list[bytes], numbers: range, report: int) -> None:
    """Try mutants: write the number of each before it is read, and what it raised besides an OpError."""
    _, mutate, read = FORMATS[kind]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))

    def late(*_: Any) -> None:
        raise TimeoutError(f"longer than {MOST_SECONDS} s")

    signal.signal(signal.SIGPROF, late)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            os.write(report, f"{number}\n".encode())
            draw = random.Random(number)
            data = mutate(draw.choice(seeds), draw)
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            try:
                read(data, Path(folder))
            except ow.errors.OpError:
                pass
            except BaseException as error:
                os.write(report, f"{number} {type(error).__name__}: {error}".replace("\n", " ")[:300].encode() + b"\n")
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)


def fuzz(kind: str, seconds: float, first: int) -> tuple[int, dict[int, str]]:
    """Return how many mutants were tried in an amount of processor time, and findings."""
    seeds, findings, number = FORMATS[kind][0](), {}, first
    while (used := sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])) < seconds:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1)
            os.dup2(devnull, 2)
            block(kind, seeds, range(number, number + BLOCK), writer)
            os._exit(0)
        os.close(writer)
        last = number
        with open(reader) as lines:
            for line in lines:
                head, _, text = line.strip().partition(" ")
                last = int(head)
                if text:
                    findings[last] = text
                    print(f"{kind} {last}: {text}", flush=True)
        _, status = os.waitpid(child, 0)
        if status:
            findings[last] = f"ended the process: {status}"
            print(f"{kind} {last}: {findings[last]}", flush=True)
        number = last + 1
    print(f"{kind}: {number - first} mutants, {len(findings)} findings, {used:.0f} s", flush=True)
    return number - first, findings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="+", choices=FORMATS)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time, of all formats together")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--only", action="store_true", help="read the first mutant alone, here, with its traceback")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    formats = [f for f in options.formats if f != "torch" or importlib.util.find_spec("torch")]
    for kind in {*options.formats} - {*formats}:
        print(f"{kind}: left out, PyTorch is not installed", flush=True)
    for i, kind in enumerate(formats, 1):
        if options.only:
            make, mutate, read = FORMATS[kind]
            draw = random.Random(options.first)
            with tempfile.TemporaryDirectory() as folder:
                read(mutate(draw.choice(make()), draw), Path(folder))
            continue
        wrong += len(fuzz(kind, options.seconds * i / len(formats), options.first)[1])
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
