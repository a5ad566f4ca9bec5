"use strict";
/* One model on a canvas: transform, drawing with culling, hits. Colours come from the page's style. */
const CANVAS = (() => {
  // cividis (Nunez, Anderton, Renslow 2018), whose order every kind of colour vision sees
  const RAMP = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];

  const MARGIN = 300;  // pixels of the picture around the canvas

  function ramp(t) {
    const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1), i = Math.min(Math.floor(at), RAMP.length - 2), f = at - i;
    const c = RAMP[i].map((v, k) => Math.round(v + (RAMP[i + 1][k] - v) * f));
    return { fill: `rgb(${c.join(",")})`, ink: 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2] > 120 ? "#000" : "#fff" };
  }

  /* Return the colours of the page, or those of its light form, for paper: style.css has them first. */
  function theme(paper) {
    const rules = () => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
    const style = paper ? rules().find((rule) => rule.selectorText === ":root").style : getComputedStyle(document.documentElement);
    const colours = {};
    for (const name of ["paper", "panel", "ink", "faint", "line", "accent", "focus", "mark", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"])
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    return colours;
  }

  class Pane {
    constructor(canvas, model, onSelect) {
      this.canvas = canvas;
      this.model = model;
      this.onSelect = onSelect;
      this.context = canvas.getContext("2d", { alpha: false });
      this.x = 0; this.y = 0; this.scale = 1;
      this.boxes = []; this.edges = [];
      this.selected = null;
      this.colourOf = () => null;
      this.asked = false;
      this.drawn = 0;
      this.picture = document.createElement("canvas").getContext("2d", { alpha: false });  // with a margin for panning
      this.current = null;  // what the picture shows
      this.colours = theme();
      this.roots = new Map();
    }

    show(number) {
      this.number = number;
      if (!this.roots.has(number)) {
        const root = TREE.instantiate(this.model, number, null);
        TREE.openFirst(root);
        this.roots.set(number, root);
      }
      this.root = this.roots.get(number);
      this.selected = null;
      this.relayout();
      this.fit();
    }

    relayout() {
      TREE.arrange(this.root, { nodes: 700 });
      Object.assign(this, TREE.flatten(this.root));
      this.resize();
    }

    resize() {
      const ratio = Math.min(window.devicePixelRatio || 1, 2), box = this.canvas.getBoundingClientRect();
      this.width = Math.max(box.width, 1); this.height = Math.max(box.height, 1); this.ratio = ratio;
      const w = Math.round(this.width * ratio), h = Math.round(this.height * ratio);
      if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
      this.change();
    }

    fit() {
      const { width, height } = this.root.placed;
      const scale = Math.min(this.width / (width + 60), this.height / (height + 60));
      this.scale = Math.min(Math.max(scale, 0.004), 1.2);
      if (this.scale < 0.35 && width * 0.35 < this.width) {  // a long chain: its beginning, readable
        this.scale = Math.min(0.8, Math.max(0.35, this.width / (width + 60)));
        this.x = (this.width - width * this.scale) / 2; this.y = 20;
      } else {
        this.x = (this.width - width * this.scale) / 2; this.y = (this.height - height * this.scale) / 2;
      }
      this.ask();
    }

    fitAll() {
      const { width, height } = this.root.placed;
      this.scale = Math.min(this.width / (width + 60), this.height / (height + 60), 1.2);
      this.x = (this.width - width * this.scale) / 2; this.y = (this.height - height * this.scale) / 2;
      this.ask();
    }

    zoom(factor, px, py) {
      const scale = Math.min(Math.max(this.scale * factor, 0.002), 4), real = scale / this.scale;
      this.x = px - (px - this.x) * real; this.y = py - (py - this.y) * real; this.scale = scale;
      this.ask();
    }

    centre(it) {
      const b = it.box;
      if (!b) return;
      this.scale = Math.max(this.scale, 0.6);
      this.x = this.width / 2 - (b.x + b.w / 2) * this.scale; this.y = this.height / 2 - (b.y + Math.min(b.h, 200) / 2) * this.scale;
      this.ask();
    }

    /* Open all containers of an item, and its graph's. */
    reveal(it) {
      let changed = false;
      for (let above = it.parent; above; above = above.parent) if (!above.open) { above.open = true; changed = true; }
      if (changed) this.relayout();
    }

    toggle(it) {
      if (!TREE.expandable(it)) return;
      const before = it.box && [it.box.x * this.scale + this.x, it.box.y * this.scale + this.y];
      if (it.open) it.open = false; else TREE.expand(it);
      this.relayout();
      if (before && it.box) { this.x += before[0] - (it.box.x * this.scale + this.x); this.y += before[1] - (it.box.y * this.scale + this.y); }
      this.ask();
    }

    setAll(open) {
      const stack = [...this.root.children];
      let count = 0;
      while (stack.length) {
        const it = stack.pop();
        if (it.kind === "scope" || (it.kind === "graph") || (it.kind === "node" && it.children.length)) it.open = open || it.kind === "graph";
        if (++count < 100000) stack.push(...it.children);
      }
      this.relayout();
      this.fit();
    }

    hit(px, py) {
      const x = (px - this.x) / this.scale, y = (py - this.y) / this.scale;
      for (let i = this.boxes.length - 1; i >= 0; i--) {
        const b = this.boxes[i];
        if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h) return b.it;
      }
      return null;
    }

    select(it, quiet) {
      this.selected = it;
      this.change();
      if (!quiet) this.onSelect(this, it);
    }

    /* Draw at the next frame. Places and scale are compared with those of the picture; all else calls `change`. */
    ask() {
      if (this.asked) return;
      this.asked = true;
      requestAnimationFrame(() => { this.asked = false; this.draw(); });
    }

    change() {
      this.current = null;
      this.ask();
    }

    /* Copy the picture to the canvas; draw it anew if it does not show the view. */
    draw() {
      const now = this.current, { x, y, scale, ratio } = this;
      let dx = 0, dy = 0;
      if (now) { dx = Math.round((x - now.x) * ratio); dy = Math.round((y - now.y) * ratio); }
      if (!now || now.scale !== scale || Math.abs(dx) > now.margin || Math.abs(dy) > now.margin) {
        dx = dy = 0;
        const margin = Math.round(MARGIN * ratio), canvas = this.picture.canvas;
        const w = this.canvas.width + 2 * margin, h = this.canvas.height + 2 * margin;
        if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
        this.paint(this.picture, margin);
        this.current = { x, y, scale, margin };
      }
      const { margin } = this.current;
      this.context.drawImage(this.picture.canvas, dx - margin, dy - margin);
      this.drawn++;
    }

    paint(g, margin) {
      const c = this.colours, k = this.scale, selected = this.selected;
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.fillStyle = c.paper;
      g.fillRect(0, 0, g.canvas.width, g.canvas.height);
      const s = k * this.ratio, edge = margin / this.ratio;
      g.setTransform(s, 0, 0, s, this.x * this.ratio + margin, this.y * this.ratio + margin);
      const x0 = -(this.x + edge) / k, y0 = -(this.y + edge) / k;
      const x1 = (this.width + edge - this.x) / k, y1 = (this.height + edge - this.y) / k;
      const readable = k > 0.3, coarse = k < 0.12;
      const near = new Set();
      for (const b of this.boxes) {  // open containers are under the edges
        if (!b.it.open || b.x > x1 || b.x + b.w < x0 || b.y > y1 || b.y + b.h < y0) continue;
        g.fillStyle = c.panel; g.fillRect(b.x, b.y, b.w, b.h);
        g.lineWidth = 1 / Math.min(k, 1); g.strokeStyle = b.it === selected ? c.focus : c.line; g.strokeRect(b.x, b.y, b.w, b.h);
        if (k > 0.15) { g.fillStyle = c.faint; g.font = "600 12px system-ui, sans-serif"; g.fillText(clipped(g, `− ${b.it.label}`, b.w - 16), b.x + 8, b.y + 16); }
      }
      g.beginPath();
      const chosen = [];
      for (const e of this.edges) {
        if (e.x0 > x1 || e.x1 < x0 || e.y0 > y1 || e.y1 < y0) continue;
        if (selected && (e.from === selected || e.to === selected)) { chosen.push(e); continue; }
        if (coarse && (e.x1 - e.x0 + e.y1 - e.y0) * k < 3) continue;
        trace(g, e.points, coarse);
      }
      g.lineWidth = coarse ? 0.7 / k : 1.2; g.strokeStyle = coarse ? c.line : c.faint; g.stroke();
      if (chosen.length) {
        g.beginPath();
        for (const e of chosen) { trace(g, e.points, false); near.add(e.from); near.add(e.to); }
        g.lineWidth = Math.max(2, 1.5 / k); g.strokeStyle = c.focus; g.stroke();
      }
      if (selected && selected.kind === "node" && selected.box) this.drawFar(g, c, near, k);
      const plain = [];
      for (const b of this.boxes) {
        if (b.it.open || b.x > x1 || b.x + b.w < x0 || b.y > y1 || b.y + b.h < y0) continue;
        plain.push(b);
      }
      if (coarse) this.drawCoarse(g, plain, c); else for (const b of plain) this.drawBox(g, b, c, readable);
      if (readable && k > 0.55) this.drawTypes(g, c, x0, y0, x1, y1, chosen);
      if (selected && selected.box && !selected.open) {
        const b = selected.box;
        g.lineWidth = 3 / Math.min(k, 1); g.strokeStyle = c.focus; g.strokeRect(b.x, b.y, b.w, b.h);
      }
    }

    /* Lines from a node to its producers and readers in other containers, or to the closed scopes that hold them. */
    drawFar(g, c, near, k) {
      const it = selectedEnds(this.selected);
      g.save(); g.setLineDash([6 / k, 4 / k]); g.lineWidth = 1.5 / k; g.strokeStyle = c.focus; g.beginPath();
      for (const other of it) {
        let at = other;
        for (let above = other.parent; above; above = above.parent) if (!above.open) at = above;
        if (!at.box || near.has(at)) continue;
        const a = this.selected.box, b = at.box, up = b.y < a.y;
        g.moveTo(a.x + a.w / 2, up ? a.y : a.y + a.h); g.lineTo(b.x + b.w / 2, up ? b.y + b.h : b.y);
      }
      g.stroke(); g.restore();
    }

    fillOf(it, c) {
      const own = this.colourOf(it);
      if (own) return own;
      if (it.kind === "port") return { fill: c.paper, ink: c.faint };
      return { fill: c.panel, ink: c.ink };
    }

    drawCoarse(g, boxes, c) {
      const groups = new Map();
      for (const b of boxes) {
        const { fill } = this.fillOf(b.it, c), key = fill === c.panel || fill === c.paper ? c.faint : fill;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(b);
      }
      for (const [fill, of] of groups) {
        g.fillStyle = fill;
        g.beginPath();
        for (const b of of) g.rect(b.x, b.y, b.w, b.h);
        g.fill();
      }
    }

    drawBox(g, b, c, readable) {
      const it = b.it, { fill, ink, stripe } = this.fillOf(it, c);
      g.fillStyle = fill; g.fillRect(b.x, b.y, b.w, b.h);
      g.lineWidth = 1; g.strokeStyle = c.faint;
      if (TREE.expandable(it)) { g.strokeRect(b.x + 0.5, b.y + 0.5, b.w - 1, b.h - 1); g.strokeRect(b.x + 3.5, b.y + 3.5, b.w - 7, b.h - 7); }
      else g.strokeRect(b.x + 0.5, b.y + 0.5, b.w - 1, b.h - 1);
      if (stripe) { g.fillStyle = stripe; g.fillRect(b.x, b.y, 5, b.h); }
      if (!readable) return;
      g.fillStyle = ink;
      const room = b.w - 18, left = b.x + 11;
      if (it.kind === "node") {
        g.font = "600 12px system-ui, sans-serif"; g.fillText(clipped(g, (it.data.g ? "+ " : "") + it.label, room), left, b.y + 16);
        g.font = "11px system-ui, sans-serif"; g.fillText(clipped(g, TREE.shortName(it), room), left, b.y + 32);
      } else if (it.kind === "port") {
        g.font = "italic 11px system-ui, sans-serif"; g.fillText(clipped(g, it.label, room), left, b.y + 17);
      } else {
        g.font = "600 12px system-ui, sans-serif"; g.fillText(clipped(g, `+ ${it.label}`, room), left, b.y + 16);
        g.font = "11px system-ui, sans-serif"; g.fillText(`${it.count} nodes`, left, b.y + 32);
      }
    }

    drawTypes(g, c, x0, y0, x1, y1, chosen) {
      let count = 0;
      g.font = "10px ui-monospace, monospace";
      const marked = new Set(chosen), written = new Set();  // a value that several nodes read is written once
      for (const e of this.edges) {
        if (e.x0 > x1 || e.x1 < x0 || e.y0 > y1 || e.y1 < y0 || count > 600 || written.has(e.values[0])) continue;
        written.add(e.values[0]);
        count++;
        const value = e.instance.graph.values[e.values[0]];
        const more = e.values.length > 1 ? ` +${e.values.length - 1}` : "";
        const scale = value[2].replace(/^scale ([^,]*), zero point /, "s $1 z ");
        const text = this.model.types[value[1]] + (scale ? `  ${scale}` : "") + more;
        g.fillStyle = marked.has(e) ? c.focus : c.faint;
        g.fillText(text.length > 46 ? text.slice(0, 45) + "…" : text, e.points[0][0] + 5, e.points[0][1] + 14);
      }
    }
  }

  function selectedEnds(it) {
    const { instance } = it, ends = [];
    for (const v of it.data.i || []) {
      const from = instance.producer[v];
      if (from >= 0) ends.push(instance.leaves[from]);
    }
    for (const v of it.data.u || []) for (const to of instance.readers.get(v) || []) ends.push(instance.leaves[to]);
    return ends.slice(0, 500);
  }

  function trace(g, points, coarse) {
    const [x, y] = points[0], n = points.length, [xn, yn] = points[n - 1];
    g.moveTo(x, y);
    if (coarse) { g.lineTo(xn, yn); return; }
    if (n === 2) {
      const bend = Math.max(Math.min(Math.abs(yn - y) / 2, 60), 8) * (yn >= y ? 1 : -1);
      g.bezierCurveTo(x, y + bend, xn, yn - bend, xn, yn);
      return;
    }
    for (let i = 1; i < n - 1; i++) {
      const [a, b] = points[i], [p, q] = points[i + 1];
      g.quadraticCurveTo(a, b, i === n - 2 ? p : (a + p) / 2, i === n - 2 ? q : (b + q) / 2);
    }
  }

  const widths = new Map();
  function clipped(g, text, room) {
    const key = `${g.font}|${room | 0}|${text}`;
    let short = widths.get(key);
    if (short === undefined) {
      short = text.length > 400 ? text.slice(0, 400) : text;
      if (g.measureText(short).width > room) {
        let low = 0, high = short.length;
        while (low < high) { const mid = (low + high + 1) >> 1; if (g.measureText(short.slice(0, mid) + "…").width <= room) low = mid; else high = mid - 1; }
        short = short.slice(0, low) + "…";
      }
      if (widths.size > 20000) widths.clear();
      widths.set(key, short);
    }
    return short;
  }

  return { Pane, ramp, theme };
})();
