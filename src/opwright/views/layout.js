"use strict";
/* Places of the children of a container: dagre for small graphs, layers in linear time for others.

   arrange(sizes, edges, budget): sizes [[w, h]], in program order; edges [[from, to]] of indices
   returns {at: [[x, y]] of centres, paths: [[[x, y], ...]] by edge, width, height} */
const LAYOUT = (() => {
  const GAP_X = 22, GAP_Y = 40, DAGRE_NODES = 220, DAGRE_EDGES = 500;

  function byDagre(sizes, edges) {
    const g = new dagre.graphlib.Graph({ multigraph: true });
    g.setGraph({ rankdir: "TB", nodesep: GAP_X, ranksep: GAP_Y, marginx: 0, marginy: 0 });
    g.setDefaultEdgeLabel(() => ({}));
    sizes.forEach(([w, h], i) => g.setNode(String(i), { width: w, height: h }));
    edges.forEach(([a, b], i) => g.setEdge(String(a), String(b), {}, String(i)));
    dagre.layout(g);
    const at = sizes.map((_, i) => { const n = g.node(String(i)); return [n.x, n.y]; });
    const paths = edges.map(([a, b], i) => g.edge(String(a), String(b), String(i)).points.map((p) => [p.x, p.y]));
    return normalized(sizes, at, paths);
  }

  /* Longest paths over the edges that go forward in program order, then four sweeps by barycentres. */
  function byLayers(sizes, edges) {
    const n = sizes.length, layer = new Int32Array(n), next = Array.from({ length: n }, () => []);
    const before = Array.from({ length: n }, () => []);
    for (const [a, b] of edges) {
      if (a === b) continue;
      const [from, to] = a < b ? [a, b] : [b, a];
      next[from].push(to);
      before[to].push(from);
    }
    for (let i = 0; i < n; i++) for (const j of next[i]) layer[j] = Math.max(layer[j], layer[i] + 1);
    for (let i = n - 1; i >= 0; i--) {  // sources move down to their first reader
      if (before[i].length === 0 && next[i].length) {
        let least = Infinity;
        for (const j of next[i]) least = Math.min(least, layer[j]);
        layer[i] = Math.max(layer[i], least - 1);
      }
    }
    const layers = [];
    for (let i = 0; i < n; i++) (layers[layer[i]] = layers[layer[i]] || []).push(i);
    const x = new Float64Array(n);
    const place = (row) => {
      let right = 0;
      for (const i of row) { x[i] = right + sizes[i][0] / 2; right += sizes[i][0] + GAP_X; }
      const shift = (right - GAP_X) / 2;
      for (const i of row) x[i] -= shift;
    };
    const rows = layers.map((row) => row || []);
    rows.forEach(place);
    for (let sweep = 0; sweep < 4; sweep++) {
      const down = sweep % 2 === 0;
      for (let r = 0; r < rows.length; r++) {
        const row = rows[down ? r : rows.length - 1 - r], near = down ? before : next;
        const want = new Map();
        for (const i of row) {
          let sum = 0;
          for (const j of near[i]) sum += x[j];
          want.set(i, near[i].length ? sum / near[i].length : x[i]);
        }
        row.sort((a, b) => want.get(a) - want.get(b) || a - b);
        settle(row, sizes, x, want);
      }
    }
    const at = new Array(n);
    let y = 0;
    for (const row of rows) {
      let height = 0;
      for (const i of row) height = Math.max(height, sizes[i][1]);
      for (const i of row) at[i] = [x[i], y + height / 2];
      y += height + GAP_Y;
    }
    const paths = edges.map(([a, b]) => {
      const sign = at[a][1] <= at[b][1] ? 1 : -1;
      return [[at[a][0], at[a][1] + sign * sizes[a][1] / 2], [at[b][0], at[b][1] - sign * sizes[b][1] / 2]];
    });
    return normalized(sizes, at, paths);
  }

  /* Wanted places of a row, in order, moved apart by as little as one pass in each direction finds. */
  function settle(row, sizes, x, want) {
    const left = new Float64Array(row.length), right = new Float64Array(row.length);
    row.forEach((i, k) => {
      const least = k ? left[k - 1] + (sizes[row[k - 1]][0] + sizes[i][0]) / 2 + GAP_X : -Infinity;
      left[k] = Math.max(want.get(i), least);
    });
    for (let k = row.length - 1; k >= 0; k--) {
      const i = row[k];
      const most = k + 1 < row.length ? right[k + 1] - (sizes[row[k + 1]][0] + sizes[i][0]) / 2 - GAP_X : Infinity;
      right[k] = Math.min(want.get(i), most);
    }
    row.forEach((i, k) => { x[i] = (left[k] + right[k]) / 2; });
  }

  function normalized(sizes, at, paths) {
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    sizes.forEach(([w, h], i) => {
      x0 = Math.min(x0, at[i][0] - w / 2); x1 = Math.max(x1, at[i][0] + w / 2);
      y0 = Math.min(y0, at[i][1] - h / 2); y1 = Math.max(y1, at[i][1] + h / 2);
    });
    for (const path of paths) for (const [x, y] of path) {
      x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y);
    }
    if (!sizes.length) return { at: [], paths: [], width: 0, height: 0 };
    return {
      at: at.map(([x, y]) => [x - x0, y - y0]),
      paths: paths.map((path) => path.map(([x, y]) => [x - x0, y - y0])),
      width: x1 - x0, height: y1 - y0,
    };
  }

  function arrange(sizes, edges, budget) {
    if (sizes.length <= Math.min(DAGRE_NODES, budget.nodes) && edges.length <= DAGRE_EDGES) {
      budget.nodes -= sizes.length;
      try { return byDagre(sizes, edges); } catch (error) { console.warn("dagre:", error); }
    }
    return byLayers(sizes, edges);
  }
  return { arrange, byLayers, byDagre };
})();
