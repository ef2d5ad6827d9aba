// Attention in float64, for pages without a kernel: the lessons' attend() with the dot product, tested against torch's numbers.
"use strict";
function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0); // a row that may look at nothing
  const powers = scores.map((s) => Math.exp(s - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}
function attend(query, key, value, { scale = 1, mask = null } = {}) {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const scores = query.map((q, i) => key.map((k, j) => (mask && !mask[i][j] ? -Infinity : dot(q, k) * scale)));
  const weights = scores.map(softmax);
  const output = weights.map((row) => value[0].map((_, c) => row.reduce((sum, w, j) => sum + w * value[j][c], 0)));
  return { scores, weights, output };
}
// A number as it is typed: 0.5, 12 * 34, e^2 / (1 + e^2), sqrt(2); null for anything else. Nothing is executed.
function numberIn(text) {
  const tokens = String(text).replace(/,(?=\d{3}\b)/g, "").replace(/\*\*/g, "^").replace(/[×·]/g, "*").replace(/÷/g, "/").replace(/−/g, "-")
    .match(/\s*(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|[a-z]+|[-+*\/^()%])/gi);
  if (!tokens || tokens.join("").replace(/\s/g, "") !== String(text).replace(/,(?=\d{3}\b)/g, "").replace(/\*\*/g, "^").replace(/[×·]/g, "*").replace(/÷/g, "/").replace(/−/g, "-").replace(/\s/g, "")) return null;
  const rest = tokens.map((t) => t.trim());
  const known = { e: Math.E, pi: Math.PI }, functions = { exp: Math.exp, sqrt: Math.sqrt, log: Math.log, ln: Math.log };
  let at = 0;
  const next = (t) => rest[at] === t && (at += 1);
  function sum() {
    let x = product();
    for (;;) { if (next("+")) x += product(); else if (next("-")) x -= product(); else return x; }
  }
  function product() {
    let x = sign();
    for (;;) { if (next("*")) x *= sign(); else if (next("/")) x /= sign(); else return x; }
  }
  function sign() { return next("-") ? -sign() : next("+") ? sign() : power(); }
  function power() { const x = atom(); return next("^") ? Math.pow(x, sign()) : x; }
  function atom() {
    const t = rest[at++];
    if (t === "(") { const x = sum(); if (!next(")")) throw t; return x; }
    if (t in functions) { if (!next("(")) throw t; const x = sum(); if (!next(")")) throw t; return functions[t](x); }
    if (t in known) return known[t];
    if (t === undefined || !/^[\d.]/.test(t)) throw t;
    return parseFloat(t);
  }
  try {
    const x = sum(), share = next("%") ? x / 100 : x;
    return at === rest.length && Number.isFinite(share) ? share : null;
  } catch { return null; }
}
