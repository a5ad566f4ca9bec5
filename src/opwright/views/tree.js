"use strict";
/* A graph as a tree of scopes, and what of it is visible: containers with their children, places and edges.

   An item: {kind: "node" | "scope" | "graph" | "port", label, first (place in program order), children, open, parent,
   depth, instance, node (number), ports}. An instance is a drawn copy of a graph: a graph that several nodes run is drawn
   in each. */
const TREE = (() => {
  const TITLE = 24, PAD = 14, MOST_PORTS = 12, FIRST_VISIBLE = 260;

  function item(kind, label, parent, instance, more) {
    return Object.assign({ kind, label, parent, instance, children: [], open: false, first: 0, count: 0, links: null,
      placed: null, depth: parent ? parent.depth + 1 : 0 }, more);
  }

  function instantiate(model, number, parent) {
    const graph = model.graphs[number];
    const instance = { model, number, graph, leaves: [], producer: new Int32Array(graph.values.length).fill(-1), readers: [] };
    const root = instance.root = item("graph", graph.name || `graph ${number}`, parent, instance, { open: true });
    const scopes = new Map([["", root]]);
    const scopeOf = (path) => {
      const key = path.join("/");
      let scope = scopes.get(key);
      if (!scope) {
        const above = scopeOf(path.slice(0, -1));
        scope = item("scope", path[path.length - 1], above, instance, { path: key });
        above.children.push(scope);
        scopes.set(key, scope);
      }
      return scope;
    };
    instance.ports = ports(graph.inputs, "input", root, instance, graph);
    graph.nodes.forEach((node, i) => {
      const above = scopeOf(node.s || []);
      const leaf = item("node", model.operators[node.o].name, above, instance, { node: i, data: node, first: i });
      above.children.push(leaf);
      instance.leaves.push(leaf);
      (node.u || []).forEach((v) => { instance.producer[v] = i; });
    });
    instance.results = ports(graph.outputs, "output", root, instance, graph);
    simplify(root);
    measure(root);
    link(instance);
    return root;
  }

  function ports(values, kind, root, instance, graph) {
    const make = (label, of) => {
      const port = item("port", label, root, instance, { values: of, port: kind });
      port.first = kind === "input" ? -1 : graph.nodes.length;
      root.children.push(port);
      return port;
    };
    if (values.length > MOST_PORTS) { const port = make(`${values.length} ${kind}s`, values); return values.map(() => port); }
    return values.map((v) => make(graph.values[v][0] || kind, [v]));
  }

  /* Scopes of one child are that child; a chain of scopes is one. */
  function simplify(root) {
    const stack = [root], order = [];
    while (stack.length) { const it = stack.pop(); order.push(it); for (const c of it.children) stack.push(c); }
    for (const it of order.reverse()) {
      it.children = it.children.map((child) => {
        if (child.kind !== "scope" || child.children.length !== 1) return child;
        const only = child.children[0];
        if (only.kind === "scope") only.label = `${child.label}/${only.label}`;
        only.parent = it;
        return only;
      });
    }
    const down = [root];
    while (down.length) {
      const it = down.pop();
      for (const c of it.children) { c.depth = it.depth + 1; down.push(c); }
    }
  }

  function measure(root) {
    const order = [], stack = [root];
    while (stack.length) { const it = stack.pop(); order.push(it); for (const c of it.children) stack.push(c); }
    for (const it of order.reverse()) {
      if (it.kind === "node") { it.count = 1; continue; }
      if (it.kind === "port") continue;
      it.count = it.children.reduce((sum, c) => sum + c.count, 0);
      it.children.sort((a, b) => a.first - b.first);
      const inner = it.children.find((c) => c.kind !== "port");
      it.first = inner ? inner.first : 0;
    }
  }

  /* Each edge belongs to the least container of both ends, and joins two of its children. */
  function link(instance) {
    const { graph, leaves, producer } = instance;
    const readers = instance.readers = new Map();
    const inputs = new Map();
    graph.inputs.forEach((v, k) => inputs.set(v, instance.ports[k]));
    const join = (from, to, value) => {
      let a = from, b = to;
      while (a.depth > b.depth) a = a.parent;
      while (b.depth > a.depth) b = b.parent;
      if (a === b) return;  // a node that contains the other end: does not occur within one instance
      while (a.parent !== b.parent) { a = a.parent; b = b.parent; }
      const container = a.parent;
      const links = container.links = container.links || new Map();
      let of = links.get(a);
      if (!of) links.set(a, of = new Map());
      const values = of.get(b);
      if (!values) of.set(b, [value]); else if (values.length < 20 && !values.includes(value)) values.push(value);
    };
    graph.nodes.forEach((node, i) => {
      for (const v of node.i || []) {
        if (!readers.has(v)) readers.set(v, []);
        readers.get(v).push(i);
        const from = producer[v] >= 0 ? leaves[producer[v]] : inputs.get(v);
        if (from && from !== leaves[i]) join(from, leaves[i], v);
      }
    });
    graph.outputs.forEach((v, k) => {
      const from = producer[v] >= 0 ? leaves[producer[v]] : inputs.get(v);
      if (from) join(from, instance.results[k], v);
    });
  }

  /* Open small scopes first, until about FIRST_VISIBLE items are visible. */
  function openFirst(root) {
    let visible = root.children.length;
    const waiting = root.children.filter((c) => c.kind === "scope");
    while (waiting.length) {
      waiting.sort((a, b) => b.children.length - a.children.length);
      const scope = waiting.pop();
      if (visible + scope.children.length > (visible < 8 ? 10 * FIRST_VISIBLE : FIRST_VISIBLE)) break;
      visible += scope.children.length;
      scope.open = true;
      waiting.push(...scope.children.filter((c) => c.kind === "scope"));
    }
  }

  const expandable = (it) => it.kind === "scope" || (it.kind === "node" && !!it.data.g);

  function expand(it) {
    if (it.kind === "node" && !it.children.length) {
      it.children = it.data.g.map(([name, number]) => {
        const root = instantiate(it.instance.model, number, it);
        root.label = `${name}: ${root.label}`;
        return root;
      });
    }
    it.open = true;
  }

  function sizeOf(it) {
    const sign = expandable(it) ? 2 : 0;  // characters: "+ " or "- "
    const second = it.kind === "node" ? shortName(it).length * 0.74 : 0;
    const text = Math.max(it.label.length + sign, second) * (it.kind === "node" ? 8.6 : 7.6) + 30;
    const width = Math.min(Math.max(text, 70), 230);
    if (it.open && it.placed) return [Math.max(it.placed.width + 2 * PAD, width), it.placed.height + TITLE + 2 * PAD];
    return [width, it.kind === "port" ? 26 : 40];
  }

  function shortName(it) {
    const name = it.data.n || "";
    const first = name.split(";")[0];
    return first.slice(first.lastIndexOf("/") + 1);
  }

  /* Places of all visible items. Containers whose children kept their sizes keep their places. */
  function arrange(it, budget) {
    for (const child of it.children) if (child.open) arrange(child, budget);
    const sizes = it.children.map(sizeOf);
    const key = sizes.map((s) => `${s[0] | 0},${s[1] | 0}`).join(";");
    if (it.placed && it.placed.key === key) return;
    const index = new Map(it.children.map((c, i) => [c, i]));
    const edges = [], values = [];
    if (it.links) for (const [a, to] of it.links) for (const [b, v] of to) { edges.push([index.get(a), index.get(b)]); values.push(v); }
    it.placed = Object.assign(LAYOUT.arrange(sizes, edges, budget), { key, edges, values, sizes });
  }

  /* Flat lists in absolute coordinates, containers before their children. */
  function flatten(root) {
    const boxes = [], edges = [];
    const stack = [[root, 0, 0, 0]];
    while (stack.length) {
      const [it, left, top, width] = stack.pop();
      const { at, sizes, paths } = it.placed;
      const dx = left + (width && (width - it.placed.width) / 2), dy = top + (width && TITLE + PAD);
      it.children.forEach((child, i) => {
        const [w, h] = sizes[i], x = dx + at[i][0] - w / 2, y = dy + at[i][1] - h / 2;
        child.box = { x, y, w, h, it: child };
        boxes.push(child.box);
        if (child.open && child.placed) stack.push([child, x, y, w]);
      });
      paths.forEach((path, i) => {
        const points = path.map(([x, y]) => [x + dx, y + dy]);
        let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
        for (const [x, y] of points) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
        const [a, b] = it.placed.edges[i];
        edges.push({ points, x0, y0, x1, y1, from: it.children[a], to: it.children[b], values: it.placed.values[i], instance: it.instance });
      });
    }
    boxes.sort((a, b) => a.it.depth - b.it.depth);
    return { boxes, edges };
  }

  return { instantiate, openFirst, expandable, expand, arrange, flatten, shortName, TITLE };
})();
