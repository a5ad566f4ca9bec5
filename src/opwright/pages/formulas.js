"use strict";
/* Formulas in TeX as MathML, which browsers draw themselves. */
const FORMULA = (() => {
  const MATHML = "http://www.w3.org/1998/Math/MathML", KEPT = /^(display|columnalign|rowspacing|columnspacing|stretchy|fence|separator|lspace|rspace|mathvariant|accent|movablelimits|largeop|symmetric|form|linethickness|width|height|depth|displaystyle|scriptlevel|minsize|maxsize|class|xmlns)$/;

  /* Return the element of a formula, null if it cannot be read. Only elements of MathML and their layout are kept. */
  function element(tex) {
    let markup;
    try { markup = temml.renderToString(tex, { displayMode: true, throwOnError: true, trust: false }); } catch { return null; }
    markup = markup.replace(/ style="[^"]*"/g, "");  // which the page's policy would block, with a warning
    const math = new DOMParser().parseFromString(markup, "text/html").body.firstElementChild;
    if (!math) return null;
    for (const node of [math, ...math.querySelectorAll("*")]) {
      if (node.namespaceURI !== MATHML) return null;
      for (const { name } of [...node.attributes]) if (!KEPT.test(name)) node.removeAttribute(name);
    }
    return document.importNode(math, true);
  }

  /* Draw the formula that an element has as text; what cannot be read stays as it is. */
  function draw(pre) {
    const math = element(pre.textContent);
    if (!math) return;
    const shown = document.createElement("div");
    shown.className = "formula";
    shown.title = pre.textContent;
    shown.append(math);
    pre.replaceWith(shown);
  }

  for (const pre of document.querySelectorAll("pre.formula")) draw(pre);
  return { draw, element };
})();
