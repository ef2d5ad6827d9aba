// Plays what an explorer drew: its recording (lesson_lib/cli/site/states.py) is loaded when its place is near, as a script, since
// pages of the file system may not fetch. Without scripts, or where the browser cannot unpack it, the still picture stays.
"use strict";
const waiting = {};
function recorded(name, data) { (waiting[name] || []).forEach((place) => unpack(data).then((told) => play(place, told)).catch(() => {})); }
async function unpack(data) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
function play(place, told) {
  const box = made("div", "player"), controls = made("div", "player-controls"), drawing = made("div", "player-drawing");
  const at = told.controls.map(() => null); // the chosen label of each control
  const leading = told.controls.flatMap((c, i) => (c.leads ? [i] : [])), others = told.controls.flatMap((c, i) => (c.leads ? [] : [i]));
  const shown = told.controls.map((control, i) => offer(control, told.plays === i, (label) => { at[i] = label; settle(); }));
  shown.forEach((one) => controls.append(one.element));
  // The labels that each control offers now, its place among them, and the state's number.
  function settle() {
    let node = told.tree;
    for (const i of leading) { const n = find(node.labels, at[i], node.at); at[i] = node.labels[n]; shown[i].show(node.labels, n); node = node.next[n]; }
    let number = 0;
    others.forEach((i, k) => {
      const labels = node.labels[k], n = find(labels, at[i], node.at[k]);
      at[i] = labels[n];
      shown[i].show(labels, n);
      number = number * labels.length + n;
    });
    drawing.innerHTML = told.drawings[node.first + number].map((token) => told.tokens[token]).join("");
    drawing.querySelectorAll("table").forEach((table) => numbers(table).forEach((cell, i) => { cell.tabIndex = i ? -1 : 0; }));
  }
  // A number that is no longer offered becomes the last one, as a slider's does; other words begin anew.
  const find = (labels, label, start) => {
    if (label === null) return start;
    const n = labels.indexOf(label);
    return n >= 0 ? n : /^\d+$/.test(label) && /^\d+$/.test(labels[0]) ? labels.length - 1 : start;
  };
  settle();
  box.append(controls, drawing);
  drawing.addEventListener("keydown", move);
  drawing.addEventListener("focusin", ({ target }) => {
    if (target.matches("td[tabindex]")) numbers(target.closest("table")).forEach((cell) => { cell.tabIndex = cell === target ? 0 : -1; });
  });
  const lacks = told.lacks.join(", "), formulas = told.tokens.some((token) => token.includes('<td') && token.includes('tabindex="0"'));
  const words = (formulas ? "Point at or tap a number for its formula; with keys, Tab to a table, then arrows. " : "") + (told.thinned ? "Recorded: the sliders stop at some of their values. " : "") + (lacks ? `In the notebook only: ${lacks}.` : "");
  if (words) box.append(made("p", "player-note", words.trim()));
  place.replaceChildren(box);
  place.dataset.ready = "";
}
// A table with formulas is one stop of the Tab key, as a group of radio buttons is; arrows go from number to number.
const numbers = (table) => [...table.querySelectorAll("td[tabindex]")];
const AWAY = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
function move(event) {
  const cell = event.target, away = AWAY[event.key];
  if (!away || !cell.matches("td[tabindex]")) return;
  event.preventDefault();
  let row = cell.parentElement.rowIndex, column = cell.cellIndex, next;
  const rows = cell.closest("table").rows;
  do {
    [row, column] = [row + away[0], column + away[1]];
    next = rows[row]?.cells[column];
  } while (next && !next.matches("td[tabindex]"));
  next?.focus();
}
let count = 0;
function offer(control, plays, chosen) {
  const element = made("div", `player-${control.kind}`), id = `player-${(count += 1)}`, name = made("span", "player-name", control.name);
  name.id = id;
  let labels = [], now = 0, timer = null;
  if (control.kind === "choice") {
    element.setAttribute("role", "group");
    element.setAttribute("aria-labelledby", id);
    const buttons = made("div", "player-buttons");
    element.append(name, buttons);
    return { element, show(offered, n) {
      if (offered.join("\0") !== labels.join("\0")) {
        labels = offered;
        buttons.replaceChildren(...labels.map((label) => { const b = made("button", "", label); b.onclick = () => chosen(label); return b; }));
      }
      [...buttons.children].forEach((b, i) => b.setAttribute("aria-pressed", String(i === n)));
      element.hidden = labels.length < 2;
    } };
  }
  const slider = made("input"), told = made("output");
  slider.type = "range";
  slider.min = 0;
  slider.setAttribute("aria-labelledby", id);
  slider.oninput = () => { stop(); chosen(labels[slider.value]); };
  function stop() { clearInterval(timer); timer = null; if (button) button.textContent = "▶ play"; }
  let button = null;
  element.append(name, slider, told);
  if (plays) {
    const step = (by) => { stop(); chosen(labels[Math.min(labels.length - 1, Math.max(0, now + by))]); };
    const back = made("button", "", "‹ back"), on = made("button", "", "on ›");
    button = made("button", "", "▶ play");
    back.onclick = () => step(-1);
    on.onclick = () => step(1);
    button.onclick = () => {
      if (timer) return stop();
      if (now === labels.length - 1) chosen(labels[0]);
      button.textContent = "❚❚ pause";
      timer = setInterval(() => { if (now === labels.length - 1) stop(); else chosen(labels[now + 1]); }, 1500);
    };
    element.append(back, button, on);
  }
  return { element, show(offered, n) {
    [labels, now] = [offered, n];
    slider.max = labels.length - 1;
    slider.value = n;
    told.textContent = labels[n];
    slider.setAttribute("aria-valuetext", labels[n]);
    element.hidden = labels.length < 2;
  } };
}
function load(place) {
  (waiting[place.dataset.states] ||= []).push(place);
  const script = made("script");
  script.src = place.dataset.src;
  document.head.append(script);
}
document.addEventListener("DOMContentLoaded", () => {
  if (typeof DecompressionStream === "undefined") return;
  const seen = new IntersectionObserver((entries) => entries.forEach((one) => { if (one.isIntersecting) { seen.unobserve(one.target); load(one.target); } }), { rootMargin: "600px" });
  document.querySelectorAll("[data-states]").forEach((place) => seen.observe(place));
});
