"use strict";
/* The page: toolbar, search, the operator's page, overlays, keyboard, two models side by side.

   Text from models is set as textContent and drawn on canvases; nothing here writes markup. */
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const $ = (id) => document.getElementById(id);
  const side = $("side"), list = $("hits"), legend = $("legend");
  const panes = [];
  let active = null;

  function element(name, text, parent, attributes) {
    const node = document.createElement(name);
    if (text !== null && text !== undefined) node.textContent = String(text);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    if (parent) parent.append(node);
    return node;
  }

  const bytes = (n) => n === null || n === undefined ? "?" : n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1048576).toFixed(1)} MiB`;
  const seconds = (t) => t < 1e-3 ? `${(t * 1e6).toFixed(2)} µs` : `${(t * 1e3).toFixed(3)} ms`;

  const percent = (v) => `${(v * 100).toFixed(1)} %`;

  /* ---- overlays: the figure of a node, how figures of a scope combine, its text ---- */
  const OVERLAYS = {
    category: { label: "kind of operator" },
    weights: { label: "bytes of constants", of: (n) => n.w || 0, sum: true, text: bytes },
    results: { label: "bytes of results", of: (n) => n.y || 0, sum: true, text: bytes },
    sparsity: { label: "zeros among the constants", of: (n) => n.z || 0, has: (n) => n.z !== undefined, text: percent },
    arena: { label: "share of the most bytes alive", of: (n, graph) => graph.arena ? (n.l || 0) / graph.arena : 0, text: percent },
    runtime: { label: "run time that is needed", has: (n) => n.r !== undefined },
    time: { label: "time", of: (n) => n.t || 0, sum: true, has: (n) => n.t !== undefined, text: seconds },
    peak: { label: "share of the processor's peak", of: (n) => n.p || 0, has: (n) => n.p !== undefined, text: percent, most: 1 },
    quantization: { label: "quantization error of the node's own", of: (n) => n.q || 0, has: (n) => n.q !== undefined, text: percent },
    error: { label: "error against the other model", of: (n) => n.e || 0, has: (n) => n.e !== undefined, text: (v) => v.toPrecision(3) },
    pairs: { label: "differences" },
    none: { label: "no colours" },
  };
  let overlay = "category";

  const runtimeKey = (text) => text.split(".").reduce((sum, part, i) => sum + Number(part) / 1000 ** i, 0);
  const runtimes = [...new Set(content.models.flatMap((m) => m.graphs.flatMap((g) => g.nodes.map((n) => n.r).filter((r) => r))))]
    .sort((a, b) => runtimeKey(a) - runtimeKey(b));

  function figure(it, kind) {
    if (it.kind === "port" || it.kind === "graph") return null;
    if (it.kind === "node") return kind.of(it.data, it.instance.graph);
    it.figures = it.figures || {};
    if (it.figures[overlay] === undefined) {
      let total = 0;
      for (const child of it.children) {
        const value = figure(child, kind) || 0;
        total = kind.sum ? total + value : Math.max(total, value);
      }
      it.figures[overlay] = total;
    }
    return it.figures[overlay];
  }

  let printing = false;

  /* Draw for paper, at once: a browser takes the canvases as they are when its listeners have returned. */
  function print(on) {
    printing = on;
    applyOverlay();
    for (const pane of panes) pane.draw();
  }

  function applyOverlay() {
    const kind = OVERLAYS[overlay];
    legend.replaceChildren();
    const key = (fill, text) => {
      const entry = element("span", null, legend, { class: "key" });
      const box = element("canvas", null, entry, { width: 14, height: 14, "aria-hidden": "true" });
      const g = box.getContext("2d");
      g.fillStyle = fill; g.fillRect(0, 0, 14, 14);
      element("span", text, entry);
    };
    const colours = CANVAS.theme(printing);
    for (const pane of panes) {
      pane.colours = colours;
      if (overlay === "none") pane.colourOf = () => null;
      else if (overlay === "category") {
        pane.colourOf = (it) => it.kind === "node" ? { fill: colours.panel, ink: colours.ink, stripe: colours[`c${pane.model.operators[it.data.o].category}`] } : null;
      } else if (overlay === "pairs") {
        pane.colourOf = (it) => {
          if (it.kind === "scope") return mark(worst(it, pane), colours);
          return it.kind === "node" ? mark(stateOf(it, pane), colours) : null;
        };
      } else if (overlay === "runtime") {
        const at = new Map(runtimes.map((r, i) => [r, runtimes.length > 1 ? i / (runtimes.length - 1) : 1]));
        pane.colourOf = (it) => it.kind === "node" && it.data.r ? CANVAS.ramp(at.get(it.data.r)) : null;
      } else {
        let most = 0;
        for (const g of pane.model.graphs) for (const n of g.nodes) most = Math.max(most, kind.of(n, g));
        if (kind.most) most = kind.most;  // of all models alike
        pane.most = most;
        pane.colourOf = (it) => {
          const value = figure(it, kind);
          return value ? CANVAS.ramp(Math.sqrt(Math.min(value / (most || 1), 1))) : null;
        };
      }
      pane.change();
    }
    if (overlay === "category") content.categories.forEach((text, i) => key(colours[`c${i}`], text));
    else if (overlay === "runtime") runtimes.forEach((r, i) => key(CANVAS.ramp(runtimes.length > 1 ? i / (runtimes.length - 1) : 1).fill, r));
    else if (overlay === "pairs") for (const [state, text] of [["same", "equal"], ["changed", "changed"], ["alone", "in this model alone"]]) key(mark(state, colours).fill, text);
    else if (kind.of) {
      const most = Math.max(...panes.map((p) => p.most));
      for (const share of [0, 0.25, 0.5, 0.75, 1]) key(CANVAS.ramp(share).fill, kind.text(most * share * share));
    }
  }

  function mark(state, colours) {
    return state === "changed" ? { fill: colours.c4, ink: colours.paper } : state === "alone" ? { fill: colours.c1, ink: colours.paper } : { fill: colours.panel, ink: colours.ink };
  }

  const partners = [new Map(), new Map()];  // by "graph/node": [node of the other model, texts]
  for (const [graph, pairs, texts] of content.pairs || []) pairs.forEach(([i, j], k) => {
    partners[0].set(`${graph}/${i}`, [j, texts[k]]);
    partners[1].set(`${graph}/${j}`, [i, texts[k]]);
  });

  function stateOf(it, pane) {
    const partner = partners[panes.indexOf(pane)].get(`${it.instance.number}/${it.node}`);
    return partner ? (partner[1].length ? "changed" : "same") : "alone";
  }

  function worst(it, pane) {
    if (it.state === undefined) {
      const states = it.children.map((c) => c.kind === "node" ? stateOf(c, pane) : c.kind === "scope" ? worst(c, pane) : "same");
      it.state = states.includes("alone") ? "alone" : states.includes("changed") ? "changed" : "same";
    }
    return it.state;
  }

  /* ---- the operator's page ---- */
  function row(table, name, value) {
    const tr = element("tr", null, table);
    element("th", name, tr, { scope: "row", class: "text" });
    return element("td", value, tr, { class: "text" });
  }

  function link(text, parent, act) {
    const button = element("button", text, parent, { type: "button", class: "link" });
    button.addEventListener("click", act);
    return button;
  }

  function valueText(model, value) {
    return [model.types[value[1]], value[2], value[3] ? `constant, ${bytes(value[4])}` : value[4] === null ? "" : bytes(value[4])].filter((t) => t).join("; ");
  }

  /* The distribution of a constant's elements, and the elements as text. */
  function weights(of, parent) {
    const label = `${of.low.toPrecision(4)} to ${of.high.toPrecision(4)}, mean ${of.mean.toPrecision(4)}, deviation ${of.deviation.toPrecision(4)}`;
    if (of.counts.length) {
      const canvas = element("canvas", null, parent, { width: 192, height: 40, role: "img", "aria-label": `Distribution: ${label}` });
      const g = canvas.getContext("2d"), most = Math.max(...of.counts), wide = 192 / of.counts.length;
      g.fillStyle = CANVAS.theme().c0;
      of.counts.forEach((n, i) => g.fillRect(i * wide, 40 - 40 * n / most, wide - 1, 40 * n / most));
    }
    element("div", label, parent, { class: "note" });
    const details = element("details", null, parent);
    element("summary", "elements", details);
    element("pre", of.elements, details);
  }

  function go(pane, it) {
    pane.reveal(it);
    pane.centre(it);
    activate(pane);
    pane.select(it);
  }

  function describe(pane, it) {
    side.replaceChildren();
    if (!it) { describeModel(pane); return; }
    const model = pane.model, graph = it.instance.graph;
    if (it.kind !== "node") {
      element("h2", it.label, side);
      const table = element("table", null, side);
      if (it.kind === "port") for (const v of it.values.slice(0, 100)) row(table, graph.values[v][0], valueText(model, graph.values[v]));
      else {
        row(table, "scope", it.path || it.label);
        row(table, "nodes", it.count);
        for (const name of ["weights", "results", "time"]) {
          const kind = OVERLAYS[name];
          if (kind.has && !content.has.includes(name)) continue;
          const before = overlay;
          overlay = name;
          row(table, kind.label, kind.text(figure(it, kind) || 0));
          overlay = before;
        }
      }
      return;
    }
    const node = it.data, op = model.operators[node.o];
    element("h2", op.name, side);
    element("p", node.n || "", side, { class: "note" });
    const partner = partners[panes.indexOf(pane)].get(`${it.instance.number}/${it.node}`);
    if (panes.length > 1) {
      element("h3", partner ? (partner[1].length ? "Differs from its partner" : "Equal to its partner") : "In this model alone", side);
      if (partner) { const ul = element("ul", null, side); for (const text of partner[1]) element("li", text, ul); }
    }
    if (op.formula) { element("h3", "Formula", side); FORMULA.draw(element("pre", op.formula, side, { class: "formula" })); }
    const attributes = Object.entries(model.attrs[node.a]);
    if (attributes.length) {
      element("h3", "Attributes", side);
      const table = element("table", null, side);
      for (const [name, value] of attributes) row(table, name, value);
    }
    if (node.g) {
      element("h3", "Sub-graphs", side);
      const p = element("p", null, side);
      link(it.open ? "close" : `open ${node.g.length} here`, p, () => { pane.toggle(it); describe(pane, it); });
    }
    for (const [title, values, inputs] of [["Inputs", node.i || [], true], ["Outputs", node.u || [], false]]) {
      if (!values.length) continue;
      element("h3", title, side);
      const table = element("table", null, side);
      values.slice(0, 200).forEach((v, k) => {
        const value = graph.values[v];
        const name = inputs && op.inputs ? op.inputs[Math.min(k, op.inputs.length - 1)] : k;
        const cell = row(table, name, valueText(model, value));
        element("div", value[0], cell, { class: "note" });
        if (graph.weights && graph.weights[v]) weights(graph.weights[v], cell);
        const others = inputs ? (it.instance.producer[v] >= 0 ? [it.instance.producer[v]] : []) : it.instance.readers.get(v) || [];
        for (const other of others.slice(0, 12)) {
          const leaf = it.instance.leaves[other];
          link(`${inputs ? "from" : "to"} ${leaf.label} ${other}`, cell, () => go(pane, leaf));
        }
      });
    }
    element("h3", "Memory and execution", side);
    const table = element("table", null, side);
    row(table, "place in program order", it.node);
    if (node.at) row(table, "source", node.at);
    if (node.f) row(table, "recorded at", node.f);
    for (const rule of node.m || []) row(table, "made by", model.rules[rule]);
    if (node.w) row(table, "constants", bytes(node.w));
    row(table, "results", bytes(node.y || 0));
    if (node.l) row(table, "values alive while it runs", `${bytes(node.l)} of ${bytes(graph.arena)}`);
    if (node.t !== undefined) row(table, "time", seconds(node.t));
    if (node.p !== undefined) row(table, "share of the peak", percent(node.p));
    if (node.e !== undefined) row(table, "largest error", node.e.toPrecision(4));
    if (node.q !== undefined) row(table, "quantization error", `${percent(node.q)} of the float tensor's deviation`);
    if (node.z !== undefined) row(table, "zeros among the constants", percent(node.z));
    row(table, "computed by", node.k || (content.has.includes("time") ? "nothing: no kernel runs for it" : "not measured: opwright view --runs 50"));
    row(table, "lowered by", op.rule || "no rule: the interpreter's kernel in NumPy, or a custom operator's own");
    row(table, "operator", op.dialect);
    if (node.v) {
      row(table, "version in the file", node.v);
      if (node.d) row(table, "version that it needs", node.d);
      row(table, "first official run time", node.r || (op.versions ? "unknown" : "custom operators are not versioned"));
      if (node.why) row(table, "because", node.why);
    }
    if (op.versions && op.versions.length) {
      element("h3", "Versions", side);
      const versions = element("table", null, side);
      const head = element("tr", null, versions);
      for (const text of ["version", "run time", "when"]) element("th", text, head, { scope: "col", class: "text" });
      for (const cells of op.versions) { const tr = element("tr", null, versions); for (const text of cells) element("td", text || "?", tr, { class: "text" }); }
    }
    if (op.doc) { element("h3", "Documentation", side); element("pre", op.doc, side); }
  }

  function describeModel(pane) {
    const model = pane.model, graph = model.graphs[pane.number];
    element("h2", model.title, side);
    const table = element("table", null, side);
    for (const [name, value] of model.facts) row(table, name, value);
    row(table, "graphs", model.graphs.length);
    row(table, "nodes of this graph", graph.nodes.length);
    row(table, "constants of this graph", bytes(graph.nodes.reduce((sum, n) => sum + (n.w || 0), 0)));
    row(table, "most bytes of values alive", bytes(graph.arena));
    if (panes.length > 1) {
      const changed = [], at = panes.indexOf(pane);
      let alone = 0;
      graph.nodes.forEach((n, i) => {
        const partner = partners[at].get(`${pane.number}/${i}`);
        if (!partner) alone++;
        if (!partner || partner[1].length) changed.push([i, partner ? partner[1] : ["in this model alone"]]);
      });
      element("h3", `${graph.nodes.length - alone} nodes have partners, ${changed.length - alone} of them differ; ${alone} are alone`, side);
      const differing = element("table", null, side);
      for (const [i, texts] of changed.slice(0, 300)) {
        const leaf = pane.root.instance.leaves[i];
        const tr = element("tr", null, differing);
        link(`${leaf.label} ${i}`, element("th", null, tr, { scope: "row", class: "text" }), () => go(pane, leaf));
        element("td", texts.slice(0, 4).join("; "), tr, { class: "text" });
      }
      if (changed.length > 300) element("p", `${changed.length - 300} more`, side);
    }
    element("h3", "Operators", side);
    const counts = new Map();
    for (const n of graph.nodes) counts.set(n.o, (counts.get(n.o) || 0) + 1);
    const operators = element("table", null, side);
    for (const [o, count] of [...counts].sort((a, b) => b[1] - a[1])) row(operators, model.operators[o].name, count);
    element("h3", "Keys", side);
    const keys = element("table", null, side);
    for (const [name, text] of [["/", "search"], ["↑ ↓", "to a producer, to a reader"], ["← →", "in program order"], ["Enter", "open or close a scope or sub-graphs"],
      ["+ −", "zoom"], ["0", "the whole graph"], ["e c", "open, close all scopes"], ["Esc", "the model's page"]]) row(keys, name, text);
  }

  /* ---- events ---- */
  function activate(pane) {
    active = pane;
    for (const p of panes) p.canvas.classList.toggle("active", p === pane && panes.length > 1);
  }

  function selected(pane, it) {
    activate(pane);
    describe(pane, it);
    side.scrollTop = 0;
    if (panes.length < 2 || !it || it.kind !== "node") return;
    const at = panes.indexOf(pane), other = panes[1 - at];
    const partner = partners[at].get(`${it.instance.number}/${it.node}`);
    if (!partner || it.instance.number !== pane.number) { other.select(null, true); return; }
    if (other.number !== pane.number) other.show(pane.number);
    const leaf = other.root.instance.leaves[partner[0]];
    other.reveal(leaf);
    other.centre(leaf);
    other.select(leaf, true);
  }

  function pointer(pane) {
    const canvas = pane.canvas;
    let from = null, moved = 0;
    canvas.addEventListener("pointerdown", (e) => { from = [e.clientX, e.clientY]; moved = 0; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (!from) return;
      const dx = e.clientX - from[0], dy = e.clientY - from[1];
      moved += Math.abs(dx) + Math.abs(dy);
      from = [e.clientX, e.clientY];
      pane.x += dx; pane.y += dy;
      pane.ask();
    });
    canvas.addEventListener("pointerup", (e) => {
      if (from && moved < 5) {
        const box = canvas.getBoundingClientRect();
        pane.select(pane.hit(e.clientX - box.left, e.clientY - box.top));
      }
      from = null;
    });
    canvas.addEventListener("dblclick", (e) => {
      const box = canvas.getBoundingClientRect(), it = pane.hit(e.clientX - box.left, e.clientY - box.top);
      if (it) pane.toggle(it);
    });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (e.ctrlKey || !e.shiftKey) pane.zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - box.left, e.clientY - box.top);
      else { pane.x -= e.deltaX || e.deltaY; pane.ask(); }
    }, { passive: false });
    canvas.addEventListener("focus", () => activate(pane));
    canvas.addEventListener("keydown", (e) => { if (key(pane, e)) e.preventDefault(); });
  }

  function key(pane, e) {
    const it = pane.selected, middle = [pane.width / 2, pane.height / 2];
    const step = (leaf) => { if (leaf) go(pane, leaf); };
    switch (e.key) {
      case "Enter": case " ": if (it) { pane.toggle(it); describe(pane, it); } return true;
      case "Escape": pane.select(null); return true;
      case "+": case "=": pane.zoom(1.25, ...middle); return true;
      case "-": pane.zoom(0.8, ...middle); return true;
      case "0": pane.fitAll(); return true;
      case "e": pane.setAll(true); return true;
      case "c": pane.setAll(false); return true;
      case "/": $("search").focus(); return true;
      case "ArrowUp": case "ArrowDown": case "ArrowLeft": case "ArrowRight": {
        if (!it || it.kind !== "node") { step(pane.root.instance.leaves[0]); return true; }
        const { leaves, producer, readers } = it.instance;
        if (e.key === "ArrowLeft") step(leaves[it.node - 1]);
        else if (e.key === "ArrowRight") step(leaves[it.node + 1]);
        else if (e.key === "ArrowUp") step(leaves[(it.data.i || []).map((v) => producer[v]).find((p) => p >= 0)]);
        else step(leaves[(it.data.u || []).map((v) => (readers.get(v) || [])[0]).find((p) => p !== undefined)]);
        return true;
      }
      default: return false;
    }
  }

  let matches = [], at = -1;
  function search() {
    const text = $("search").value.trim().toLowerCase();
    matches = []; at = -1;
    list.replaceChildren();
    if (!text || !active) { list.hidden = true; return; }
    const { model, root } = active;
    for (const leaf of root.instance.leaves) {
      if ((leaf.data.n || "").toLowerCase().includes(text) || leaf.label.toLowerCase().includes(text)) matches.push(leaf);
    }
    const pane = active;
    element("p", `${matches.length} of ${model.graphs[pane.number].nodes.length} nodes`, list, { class: "note" });
    for (const leaf of matches.slice(0, 100)) link(`${leaf.label} ${leaf.node} ${leaf.data.n || ""}`.slice(0, 120), list, () => go(pane, leaf));
    list.hidden = false;
  }

  function start() {
    content.models.forEach((model, i) => {
      const canvas = element("canvas", null, $("panes"), { tabindex: "0", role: "application",
        "aria-label": `Graph of ${model.title}; the page next to it describes the selected node` });
      const pane = new CANVAS.Pane(canvas, model, selected);
      panes.push(pane);
      pointer(pane);
    });
    const graphs = $("graph");
    content.models[0].graphs.forEach((g, i) => element("option", `${i} ${g.name || "graph"}, ${g.nodes.length} nodes`, graphs, { value: i }));
    graphs.hidden = content.models[0].graphs.length < 2;
    graphs.addEventListener("change", () => { const n = Number(graphs.value); for (const p of panes) if (n < p.model.graphs.length) p.show(n); describe(panes[0], null); });
    const colours = $("overlay");
    content.has = Object.keys(OVERLAYS).filter((name) => {
      const { has } = OVERLAYS[name];
      if (name === "pairs") return panes.length > 1;
      return !has || content.models.some((m) => m.graphs.some((g) => g.nodes.some(has)));
    });
    for (const name of content.has) element("option", OVERLAYS[name].label, colours, { value: name });
    overlay = panes.length > 1 ? "pairs" : "category";
    colours.value = overlay;
    colours.addEventListener("change", () => { overlay = colours.value; applyOverlay(); });
    $("search").addEventListener("input", search);
    $("search").addEventListener("keydown", (e) => {
      if (e.key === "Enter" && matches.length) { at = (at + 1) % matches.length; go(active, matches[at]); }
      if (e.key === "Escape") { $("search").value = ""; search(); active.canvas.focus(); }
    });
    $("fit").addEventListener("click", () => active.fitAll());
    $("open").addEventListener("click", () => active.setAll(true));
    $("close").addEventListener("click", () => active.setAll(false));
    for (const pane of panes) pane.show(0);
    activate(panes[0]);
    applyOverlay();
    describe(panes[0], null);
    new ResizeObserver(() => panes.forEach((p) => p.resize())).observe($("panes"));
    for (const media of ["print", "(prefers-color-scheme: dark)"]) matchMedia(media).addEventListener("change", applyOverlay);
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.shown = performance.now().toFixed(0); }));
  }

  start();
  window.opwrightView = { panes, go };
})();
