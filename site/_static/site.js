// Cards that ask, and drawings that move, in a page without a kernel. Without scripts a card is a fold, a drawing a picture.
"use strict";
const PLACE = "attention-course:"; // pages of the file system share one store
function stored(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(PLACE + name);
    if (value === null) localStorage.removeItem(PLACE + name);
    else localStorage.setItem(PLACE + name, value);
  } catch { /* a browser that keeps nothing */ }
  return null;
}
function made(kind, className, text) {
  const e = document.createElement(kind);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}
// The first answer to a card and the last one; null where there is none.
function answersOf(name) {
  try { return JSON.parse(stored(name)); } catch { return null; }
}
// What is said begins with a capital, if with a word, and ends with a full stop.
function sentence(place) {
  const first = document.createTreeWalker(place, NodeFilter.SHOW_TEXT).nextNode();
  if (first && first.parentElement.closest("code, b, .katex") === null && /^\s*(a |[a-z]{2})/.test(first.data)) first.data = first.data.replace(/[a-z]/, (c) => c.toUpperCase());
  if (/[\p{L}\p{N})]\s*$/u.test(place.textContent)) place.append(".");
  return place;
}
const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

function verdict(card, answer) { // "right", "wrong" or "unread"
  const kind = card.dataset.kind, right = card.dataset.answer;
  if (kind === "number") {
    const x = numberIn(answer), y = numberIn(right);
    if (x === null) return "unread";
    return Math.abs(x - y) <= 2e-3 * Math.max(Math.abs(y), 1e-3) ? "right" : "wrong";
  }
  return (kind === "choice" ? answer === right : bare(answer) === bare(right)) ? "right" : "wrong";
}
function slipOf(card, answer) {
  const near = (a, b) => a !== null && b !== null && Math.abs(a - b) <= 2e-3 * Math.max(Math.abs(b), 1e-3);
  for (const li of card.querySelectorAll("li[data-wrong]")) {
    const wrong = li.dataset.wrong, kind = card.dataset.kind;
    const same = kind === "number" ? near(numberIn(answer), numberIn(wrong)) : bare(answer) === bare(wrong);
    if (same) return li.innerHTML.replace(/^.*?:\s/s, "");
  }
  return "";
}
function bring(card) {
  const fold = card.querySelector("details"), list = card.querySelector("ol"), name = card.dataset.question;
  const why = fold.querySelector("div").innerHTML;
  const said = made("div", "said");
  said.setAttribute("role", "status");
  const asking = made("div", "asking");
  const words = (answer) => (list ? (list.querySelector(`[data-option="${CSS.escape(answer)}"]`) || {}).textContent || answer : answer);
  function tell(answer, now) {
    const how = verdict(card, answer);
    if (how === "unread") { said.textContent = "Type a number such as 0.5, or an expression with + - * / ^, exp(), sqrt(), log(), e and pi."; return; }
    const before = answersOf(name), first = (before || { first: answer }).first;
    stored(name, JSON.stringify({ first, last: answer }));
    const given = words(answer);
    const slip = how === "wrong" ? slipOf(card, answer) : "";
    said.innerHTML = "";
    said.append(made("b", how, how === "right" ? "✓ Right" : "✗ Not so"), made("span", "", how === "right" ? "" : `, your answer: ${given}`));
    if (slip) { const p = made("div"); p.innerHTML = slip; said.append(sentence(p)); }
    const p = made("div"); p.innerHTML = why; sentence(p);
    const again = made("button", "again", "Answer again");
    again.onclick = () => { said.innerHTML = ""; asking.hidden = false; (asking.querySelector("button, input") || asking).focus(); };
    said.append(p);
    if (first !== answer) said.append(made("div", "first", `Your first answer, which is kept: ${words(first)}`));
    said.append(again);
    asking.hidden = true;
    gate();
    if (now) again.focus({ preventScroll: true });
  }
  if (list) {
    for (const li of list.querySelectorAll("li")) {
      const button = made("button", "option");
      button.innerHTML = li.innerHTML;
      button.onclick = () => tell(li.dataset.option, true);
      asking.append(button);
    }
    list.hidden = true;
  } else {
    const field = made("input");
    field.setAttribute("aria-label", "your answer");
    field.placeholder = "your answer";
    const button = made("button", "commit", "Commit");
    const commit = () => {
      if (field.value.trim()) tell(field.value.trim(), true);
      else { said.textContent = "Type an answer first: a guess will do."; field.focus(); }
    };
    button.onclick = commit;
    field.onkeydown = (event) => { if (event.key === "Enter") { event.preventDefault(); commit(); } }; // else it presses what gets the focus
    asking.append(field, button);
  }
  fold.before(asking, said);
  fold.hidden = true;
  const before = answersOf(name);
  if (before) tell(before.last, false);
}
// What a part says next waits for an answer to its card: the page goes on with the first card that is still open.
const skipped = new Set(), WHOLE = "whole:" + location.pathname;
const whole = () => document.querySelectorAll(".ll-ask[data-question]").forEach((c) => skipped.add(c));
if (stored(WHOLE)) whole(); // who asked for the whole page finds it whole
function gate() {
  if (!document.querySelector(".run-it[data-part]")) return;
  const blocks = [...document.querySelectorAll("article section > :not(section, .gate)")];
  const open = (block) => { const card = block.querySelector(".ll-ask[data-question]"); return card && !skipped.has(card) && !answersOf(card.dataset.question); };
  const last = blocks.findIndex(open);
  blocks.forEach((block, i) => (last >= 0 && i > last ? block.setAttribute("hidden", "until-found") : block.removeAttribute("hidden")));
  const old = document.querySelector(".gate"), card = last >= 0 && blocks[last].querySelector(".ll-ask");
  if (old && old.card === card) return;
  if (old) old.remove();
  if (!card || last === blocks.length - 1) return;
  const box = made("p", "gate"), on = made("button", "", "Go on without an answer"), all = made("button", "", "Show the whole page");
  box.card = card;
  on.onclick = () => { skipped.add(card); gate(); };
  all.onclick = () => { stored(WHOLE, "yes"); whole(); gate(); };
  box.append(on, all);
  blocks[last].after(box);
}
// Where something is to be written before one looks: a field, whose words this browser keeps.
function write(turn) {
  const field = made("textarea"), name = "written:" + turn.dataset.write;
  field.setAttribute("aria-label", "what you write before you look");
  field.placeholder = "Here, or on paper. It is kept in this browser, and not run; copy it into the notebook to have it checked.";
  field.rows = 4;
  field.spellcheck = false;
  field.value = stored(name) || "";
  field.oninput = () => stored(name, field.value || null);
  turn.querySelector("p").after(field);
}
// A link, or a search in the page, opens what waits, up to the place that it leads to.
function reach(place) {
  if (place && place.matches("section")) place = place.firstElementChild;
  if (!place || !place.closest("[hidden='until-found']")) return;
  document.querySelectorAll(".ll-ask[data-question]").forEach((card) => { if (card.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING) skipped.add(card); });
  gate();
  place.scrollIntoView();
}

// Whose answer you listen to: a slider for each score, weights as bars, the mixture as a sentence.
function listen(place) {
  const names = place.dataset.names.split(","), start = place.dataset.scores.split(",").map(Number);
  const values = (place.dataset.values || "").split(",").filter(Boolean).map(Number);
  const box = made("div", "live-box"), out = made("p", "live-said");
  out.setAttribute("role", "status");
  const rows = names.map((name, i) => {
    const row = made("div", "live-row"), slider = made("input"), typed = made("input"), bar = made("span", "live-bar"), told = made("output");
    Object.assign(slider, { type: "range", min: -6, max: 6, step: 0.1, value: start[i] });
    Object.assign(typed, { type: "number", step: "any", value: start[i] });
    slider.setAttribute("aria-label", `score of ${name}`);
    typed.setAttribute("aria-label", `score of ${name}, typed`);
    const track = made("span", "live-track");
    track.append(bar);
    row.append(made("b", "", values.length ? `${name} says ${values[i]}` : name), slider, typed, track, told);
    box.append(row);
    slider.oninput = () => { typed.value = slider.value; draw(); };
    typed.oninput = () => { if (typed.value !== "" && Number.isFinite(Number(typed.value))) { slider.value = typed.value; draw(); } };
    return { slider, typed, bar, told };
  });
  const more = place.dataset.more === undefined ? [] : [["times", 0, 10, 0.1, 1], ["plus", -100, 100, 1, 0]].map(([name, min, max, step, value]) => {
    const row = made("label", "live-row"), slider = made("input"), told = made("output");
    Object.assign(slider, { type: "range", min, max, step, value });
    row.append(made("b", "", `every score ${name}`), slider, told);
    slider.oninput = draw;
    box.append(row);
    return { slider, told };
  });
  function draw() {
    const [times, plus] = more.length ? more.map((one) => Number((one.told.textContent = one.slider.value))) : [1, 0];
    const scores = rows.map((row) => times * Number(row.typed.value) + plus);
    const result = attend([[1]], scores.map((s) => [s]), (values.length ? values : scores.map(() => 0)).map((v) => [v]));
    rows.forEach((row, i) => {
      const weight = result.weights[0][i];
      row.bar.style.width = `${100 * weight}%`;
      row.told.textContent = more.length ? `score ${Number(scores[i].toFixed(2))}, share ${weight.toFixed(3)}` : `share ${weight.toFixed(3)}`;
      row.slider.setAttribute("aria-valuetext", row.told.textContent);
    });
    out.textContent = values.length ? `You hear ${result.output[0][0].toFixed(1)}: each answer times its share, added up.` : "The shares sum to 1.";
  }
  box.append(out);
  place.replaceChildren(box);
  draw();
}
document.querySelectorAll(".ll-ask[data-question]").forEach(bring);
document.querySelectorAll("[data-live='listen']").forEach(listen);
document.querySelectorAll(".turn[data-write]").forEach(write);
gate();
// A drawing that is loaded on the way moves the place that a link leads to: for some seconds the page stays with it.
function aim() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  reach(place);
  const moved = new ResizeObserver(() => place.scrollIntoView({ behavior: "instant" })), end = () => moved.disconnect();
  moved.observe(document.querySelector("article"));
  setTimeout(end, 3000);
  for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(kind, end, { once: true });
}
addEventListener("hashchange", aim);
addEventListener("beforematch", (event) => reach(event.target), true);
aim();
// A menu that lies over the page closes once it has led somewhere.
document.querySelector(".toc-drawer")?.addEventListener("click", (event) => { if (event.target.closest("a")) document.getElementById("__toc").checked = false; });
// A picture that is drawn small grows with a click, and shrinks with the next.
document.querySelectorAll(".picture img").forEach((img) => {
  img.onpointerenter = () => img.classList.toggle("small", (img.getAttribute("width") || img.naturalWidth) > 1.1 * img.clientWidth);
  img.onclick = () => { if (img.classList.contains("small") || img.parentElement.matches(".large")) img.parentElement.classList.toggle("large"); };
});
// From the file system a notebook would open as text: its place says more.
if (location.protocol === "file:") document.querySelectorAll("a[href$='.ipynb'][download]").forEach((a) => { a.title = "in this site's folder: " + decodeURIComponent(a.pathname.split("/").slice(-3).join("/")); });
