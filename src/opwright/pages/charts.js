"use strict";
/* Charts of a page, drawn by Observable Plot from specifications in its own terms (charts.py). Colours are variables of
   the page's style, so that charts follow light, dark and print without being drawn again. */
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);

  /* A mark: {mark, rows, columns: {name: values}, options, bin}; options that name a column are its values. */
  function mark({ mark: name, rows, columns, options, bin }) {
    const channel = ([key, value]) => [key, typeof value === "string" && Object.hasOwn(columns, value) ? columns[value] : value];
    const channels = Object.fromEntries(Object.entries(options).map(channel));
    if (channels.title) channels.tip = true;
    return Plot[name]({ length: rows }, bin ? Plot.binX(bin, channels) : channels);
  }

  function draw(figure, chart) {
    const width = Math.max(Math.floor(figure.clientWidth), 320);
    if (figure.drawn === width) return;
    figure.drawn = width;
    const svg = Plot.plot({ ...chart.options, className: "plot", width, marks: chart.marks.map(mark) });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", chart.label);
    for (const group of svg.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");  // of parts of an image
    figure.querySelector("svg.plot")?.remove();
    figure.prepend(svg);
  }

  const figures = charts.map((chart, i) => [document.getElementById(`chart-${i}`), chart]);
  const all = () => { for (const [figure, chart] of figures) draw(figure, chart); };
  let asked = false;
  window.addEventListener("resize", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; all(); });
  });
  all();
  document.documentElement.dataset.shown = performance.now();
})();
