"""Files around a WebAssembly module: an ES module that loads it, its types, a page that runs it.

Lives here: `files_of`.
Not here: the module (wasm_linker.py), C around a library (c_files.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .c_files import elements_of, facts_of
from .memory_layouts import MemoryLayout
from .model_plans import ModelPlan, TensorDescription
from .status_codes import STATUS_TEXTS

ARRAYS = {
    "float32": "Float32Array",
    "float64": "Float64Array",
    "bool": "Uint8Array",
    "float16": "Uint16Array",
    "bfloat16": "Uint16Array",
    "complex64": "Float32Array",
    "complex128": "Float64Array",
    "int2": "Int8Array",
    "int4": "Int8Array",
    "uint4": "Uint8Array",
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    **{f"int{bits}": f"Int{bits}Array" for bits in (8, 16, 32)},
    **{f"uint{bits}": f"Uint{bits}Array" for bits in (8, 16, 32)},
}
"""Typed arrays of elements. Numbers of 16 bits are passed as their bits, complex ones as pairs."""

_LOADER = """\
// NAME: a model as WebAssembly, made by Opwright. Model: sha256 DIGEST.
//
//   import { load } from "./NAME.mjs";
//   const model = await load();
//   const { OUTPUT } = model.run({ INPUT });

/**
 * The functions of the model, the first by default: names, types and shapes of their inputs and outputs, and
 * real = scale * (q - zero_point) of quantized elements.
 */
export const signatures = SIGNATURES;
export const [{ inputs, outputs }] = signatures;

const ARENA_SIZE = ARENA, STATE_SIZE = STATE, ALIGN = 64, PAGE = 65536;
const STATUSES = TEXTS;
const ARRAYS = { CONSTRUCTORS };

/** A run that failed: a status of the library. */
export class StatusError extends Error {
  constructor(status) {
    super(`NAME: ${STATUSES[status] ?? `status ${status}`}`);
    this.name = "StatusError";
    this.status = status;
  }
}

/**
 * Load the model. source: a URL, a Response or its promise, bytes, or a WebAssembly.Module, which several workers can
 * share; by default NAME.wasm next to this file. Each model that is returned has a memory of its own.
 */
export async function load(source = new URL("./NAME.wasm", import.meta.url)) {
  return new Model(await instantiate(await source));
}

async function instantiate(source) {
  if (source instanceof WebAssembly.Module) return WebAssembly.instantiate(source, {});
  if (ArrayBuffer.isView(source) || source instanceof ArrayBuffer) {
    return (await WebAssembly.instantiate(source, {})).instance;
  }
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`NAME: ${source.url}: ${source.status} ${source.statusText}`);
    return (await WebAssembly.instantiate(await source.arrayBuffer(), {})).instance;
  }
  const url = String(source);
  if (url.startsWith("file:") && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    return instantiate(await readFile(new URL(url)));
  }
  return instantiate(await fetch(url));
}

/** Words of a structure after the pointers: the sizes that the caller states, or shapes that a run sets. */
function extents({ inputs, sizes }, tensors) {
  if (tensors === inputs) return sizes.length;
  return tensors.reduce((sum, t) => sum + (t.varies ? Math.max(t.shape.length, 1) : 0), 0);
}

const product = (shape) => shape.reduce((a, b) => a * b, 1);

class Model {
  #calls; #reset;

  constructor(instance) {
    const { memory, __heap_base: heap, NAME_reset: reset } = instance.exports;
    let end = heap.value;
    const place = (size) => {
      const start = Math.ceil(end / ALIGN) * ALIGN;
      end = start + size;
      return start;
    };
    const state = STATE_SIZE ? [place(STATE_SIZE)] : [];
    const arena = place(ARENA_SIZE);
    const layouts = signatures.map((s) => [s.inputs, s.outputs].map((tensors) => ({
      tensors,
      struct: place(4 * (tensors.length + extents(s, tensors))),
      places: tensors.map((t) => place(Math.max(t.size, 1) * ARRAYS[t.dtype].BYTES_PER_ELEMENT)),
    })));
    const missing = end - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
    const views = ({ tensors, struct, places }) => {
      new Uint32Array(memory.buffer, struct, tensors.length).set(places);
      return tensors.map((t, i) => new ARRAYS[t.dtype](memory.buffer, places[i], t.size));
    };
    const after = (s, { tensors, struct }) =>
      new Uint32Array(memory.buffer, struct + 4 * tensors.length, extents(s, tensors));
    this.#calls = signatures.map((s, i) => {
      const pointers = [...layouts[i].map(({ struct }) => struct), ...state, arena];
      const run = instance.exports[s.function], [sizes, shapes] = layouts[i].map((layout) => after(s, layout));
      return { ...s, run: () => run(...pointers, ARENA_SIZE), values: layouts[i].map(views), stated: sizes, shapes };
    });
    this.#reset = () => STATE_SIZE && reset(state[0]);
    this.reset();
  }

  /**
   * Run the model. arrays: a typed array an input; key: of the signature, the first by default; sizes: by name, where
   * the model was built with bounds, the largest by default. Returns new arrays, by output; those whose shape depends
   * on the run have it as `shape`. Throws TypeError, StatusError.
   */
  run(arrays, key = signatures[0].key, sizes = {}) {
    const call = this.#calls.find((s) => s.key === key);
    if (!call) throw new TypeError(`NAME: there is no signature ${key}`);
    const unknown = Object.keys(arrays).filter((key) => !call.inputs.some((t) => t.name === key));
    if (unknown.length) throw new TypeError(`NAME: there is no input ${unknown.join(", ")}`);
    const stated = call.sizes.map((s) => {
      const size = sizes[s.name] ?? s.most;
      if (size < s.least || size > s.most) {
        throw new TypeError(`NAME: ${s.name} is ${size}; wanted ${s.least} to ${s.most}`);
      }
      return size;
    });
    const wrong = Object.keys(sizes).filter((key) => !call.sizes.some((s) => s.name === key));
    if (wrong.length) throw new TypeError(`NAME: there is no size ${wrong.join(", ")}`);
    call.inputs.forEach((t, i) => {
      const shape = [...t.shape];
      call.sizes.forEach((s, k) => s.places.forEach(([input, axis]) => { if (input === i) shape[axis] = stated[k]; }));
      const array = arrays[t.name], wanted = t.size / Math.max(product(t.shape), 1) * product(shape);
      if (!(array instanceof ARRAYS[t.dtype]) || array.length !== wanted) {
        const text = array?.length === undefined ? String(array) : `${array.constructor.name}(${array.length})`;
        throw new TypeError(`NAME: input ${t.name} is ${text}; wanted ${ARRAYS[t.dtype].name}(${wanted})`);
      }
      call.values[0][i].set(array);
    });
    call.stated.set(stated);
    const status = call.run();
    if (status) throw new StatusError(status);
    let at = 0;
    return Object.fromEntries(call.outputs.map((t, i) => {
      const values = call.values[1][i];
      if (!t.varies) return [t.name, values.slice()];
      const shape = Array.from(call.shapes.subarray(at, at + t.shape.length));
      at += Math.max(t.shape.length, 1);
      const count = t.size / Math.max(product(t.shape), 1) * product(shape);
      return [t.name, Object.assign(values.slice(0, count), { shape })];
    }));
  }

  /** Set the state of the first run, if the model has a state. */
  reset() {
    this.#reset();
  }
}
"""


def _loader(model: ModelPlan, name: str, layout: MemoryLayout) -> str:
    """Return the ES module."""
    return _filled(
        _LOADER,
        {
            "NAME": name,
            "ARENA_SIZE = ARENA": f"ARENA_SIZE = {max(layout.arena, 1)}",
            "STATE_SIZE = STATE": f"STATE_SIZE = {layout.state[-1]}",
            "{ OUTPUT }": f"{{ {', '.join(t.identifier for t in model.outputs)} }}",
            "{ INPUT }": f"{{ {', '.join(t.identifier for t in model.inputs)} }}",
            "DIGEST": model.digest,
            "CONSTRUCTORS": _constructors(model),
            "SIGNATURES": _signatures(model, name),
            "TEXTS": json.dumps(STATUS_TEXTS),
        },
    )


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Return a text with words replaced, but not those of the replacements."""
    return re.sub("|".join(map(re.escape, values)), lambda match: values[match.group()], template)


def _constructors(model: ModelPlan) -> str:
    return ", ".join(f"{dtype}: {ARRAYS[dtype]}" for dtype in _dtypes(model))


def _dtypes(model: ModelPlan) -> list[str]:
    return sorted({t.dtype for s in model.signatures for t in (*s.inputs, *s.outputs)})


def _signatures(model: ModelPlan, name: str) -> str:
    rows = [
        {
            "key": s.key,
            "function": model.symbol(s, name),
            "inputs": [_row(t) for t in s.inputs],
            "outputs": [_row(t) | ({"varies": True} if i in s.varying else {}) for i, t in enumerate(s.outputs)],
            "sizes": [
                {"name": p.identifier, "least": p.least, "most": p.most, "places": [list(place) for place in p.places]}
                for p in s.stated
            ],
        }
        for s in model.signatures
    ]
    return json.dumps(rows, indent=1)


def _row(tensor: TensorDescription) -> dict[str, Any]:
    quantized = {} if tensor.scale is None else {"scale": tensor.scale, "zero_point": tensor.zero_point}
    return {
        "name": tensor.identifier,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "size": elements_of(tensor),
        **quantized,
    }


_TYPES = """\
// NAME: a model as WebAssembly, made by Opwright.

export interface Tensor {
  name: string;
  dtype: string;
  shape: number[];
  size: number;
  scale?: number;
  zero_point?: number;
  varies?: boolean;
}

export interface Size {
  name: string;
  least: number;
  most: number;
  places: [number, number][];
}

export interface Signature {
  key: string;
  function: string;
  inputs: Tensor[];
  outputs: Tensor[];
  sizes: Size[];
}

export declare const signatures: Signature[];
export declare const inputs: Tensor[];
export declare const outputs: Tensor[];

export declare class StatusError extends Error {
  status: number;
}

export type Source = string | URL | Response | BufferSource | WebAssembly.Module;
export declare function load(source?: Source | Promise<Source>): Promise<Model>;
"""


def _types(model: ModelPlan, name: str) -> str:
    """Return the types of the ES module, for TypeScript."""

    def fields(tensors: Sequence[TensorDescription], varying: Sequence[int] = ()) -> str:
        kinds = [ARRAYS[t.dtype] + " & { shape: number[] }" * (i in varying) for i, t in enumerate(tensors)]
        return "".join(f"\n    /** {facts_of(t)} */\n    {t.identifier}: {kind};" for t, kind in zip(tensors, kinds))

    lines = [_TYPES.replace("NAME", name), "export interface Model {"]
    for i, s in enumerate(model.signatures):
        key = f"key{'' if i else '?'}: {json.dumps(s.key)}"
        sizes = ", sizes?: { " + "; ".join(f"{p.identifier}?: number" for p in s.stated) + " }" if s.stated else ""
        results = fields(s.outputs, s.varying)
        lines.append(f"  run(arrays: {{{fields(s.inputs)}\n  }}, {key}{sizes}): {{{results}\n  }};")
    return "\n".join([*lines, "  reset(): void;", "}", ""])


_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>NAME</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; }
  table { border-collapse: collapse; }
  th, td { text-align: left; padding: 0.2em 1em 0.2em 0; vertical-align: top; }
  td:last-child { font-family: monospace; }
</style>
<h1>NAME</h1>
<p>The model runs in this page, on your machine. Serve this folder over HTTP to open it:
  <code>python -m http.server</code></p>
<p><label>Inputs: <select id="fill"><option>random<option>zeros</select></label>
  <button id="run" disabled>Run</button> <output id="time"></output></p>
<table id="outputs"></table>
<script type="module">
  import { load, inputs, outputs } from "./NAME.mjs";

  const at = (id) => document.getElementById(id);
  const ARRAYS = { CONSTRUCTORS };
  const RANGES = RANGE_TABLE;

  function filled({ dtype, size }) {
    const [low, high] = at("fill").value === "random" ? RANGES[dtype] : [0, 0];
    const array = new ARRAYS[dtype](size);
    const big = array instanceof BigInt64Array || array instanceof BigUint64Array;
    for (let i = 0; i < size; i++) {
      const x = low + Math.random() * (high - low);
      array[i] = big ? BigInt(Math.floor(x)) : x;
    }
    return array;
  }

  function run(model) {
    const arrays = Object.fromEntries(inputs.map((t) => [t.name, filled(t)]));
    const start = performance.now();
    const results = model.run(arrays);
    at("time").value = `${(performance.now() - start).toFixed(2)} ms`;
    at("outputs").replaceChildren(...outputs.map((t) => {
      const row = document.createElement("tr");
      const first = Array.from(results[t.name].subarray(0, 10), (x) => Number(x).toPrecision(6) * 1);
      const shape = results[t.name].shape ?? t.shape, more = results[t.name].length > 10 ? " ..." : "";
      for (const text of [t.name, `${t.dtype}[${shape}]`, first.join(" ") + more]) {
        row.appendChild(document.createElement("td")).textContent = text;
      }
      return row;
    }));
  }

  try {
    const model = await load();
    at("run").onclick = () => {
      try {
        run(model);
      } catch (error) {
        at("time").value = String(error);
      }
    };
    at("run").disabled = false;
    at("run").click();
  } catch (error) {
    at("time").value = String(error);
  }
</script>
"""


def _page(model: ModelPlan, name: str) -> str:
    """Return the page: random inputs or zeros, the outputs and the time of a run of the first signature."""
    ranges = json.dumps({d: _range(d) for d in _dtypes(model)})
    return _filled(_PAGE, {"NAME": name, "CONSTRUCTORS": _constructors(model), "RANGE_TABLE": ranges})


def files_of(model: ModelPlan, name: str, layout: MemoryLayout) -> dict[str, bytes]:
    """Return the files around a module."""
    return {
        f"{name}.mjs": _loader(model, name, layout).encode(),
        f"{name}.d.ts": _types(model, name).encode(),
        "index.html": _page(model, name).encode(),
    }


def _range(dtype: str) -> list[int]:
    """Return the range of random elements: of the type where it has 8 bits, otherwise [0, 1)."""
    return {"int8": [-128, 128], "uint8": [0, 256], "bool": [0, 2]}.get(dtype, [0, 1])
