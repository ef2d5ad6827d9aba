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
  function tell(answer) {
    const how = verdict(card, answer);
    if (how === "unread") { said.textContent = "Type a number such as 0.5, or an expression with + - * / ^, exp(), sqrt(), log(), e and pi."; return; }
    stored(name, answer);
    const given = list ? (list.querySelector(`[data-option="${CSS.escape(answer)}"]`) || {}).textContent || answer : answer;
    const slip = how === "wrong" ? slipOf(card, answer) : "";
    said.innerHTML = "";
    said.append(made("b", how, how === "right" ? "✓ Right" : "✗ Not so"), made("span", "", how === "right" ? "" : `, your answer: ${given}`));
    if (slip) { const p = made("div"); p.innerHTML = slip; said.append(p); }
    const p = made("div"); p.innerHTML = why;
    const again = made("button", "again", "Answer again");
    again.onclick = () => { stored(name, null); said.innerHTML = ""; asking.hidden = false; (asking.querySelector("button, input") || asking).focus(); };
    said.append(p, again);
    asking.hidden = true;
  }
  if (list) {
    for (const li of list.querySelectorAll("li")) {
      const button = made("button", "option");
      button.innerHTML = li.innerHTML;
      button.onclick = () => tell(li.dataset.option);
      asking.append(button);
    }
    list.hidden = true;
  } else {
    const field = made("input");
    field.setAttribute("aria-label", "your answer");
    field.placeholder = "your answer";
    const button = made("button", "commit", "Commit");
    const commit = () => field.value.trim() && tell(field.value.trim());
    button.onclick = commit;
    field.onkeydown = (event) => event.key === "Enter" && commit();
    asking.append(field, button);
  }
  fold.before(asking, said);
  fold.hidden = true;
  const before = stored(name);
  if (before !== null) tell(before);
}

// Whose answer you listen to: a slider for each score, weights as bars, the mixture as a sentence.
function listen(place) {
  const names = place.dataset.names.split(","), start = place.dataset.scores.split(",").map(Number);
  const values = (place.dataset.values || "").split(",").filter(Boolean).map(Number);
  const box = made("div", "live-box"), out = made("p", "live-said");
  out.setAttribute("role", "status");
  const rows = names.map((name, i) => {
    const row = made("label", "live-row"), slider = made("input"), bar = made("span", "live-bar"), told = made("output");
    Object.assign(slider, { type: "range", min: -6, max: 6, step: 0.1, value: start[i] });
    slider.setAttribute("aria-label", `score of ${name}`);
    const track = made("span", "live-track");
    track.append(bar);
    row.append(made("b", "", values.length ? `${name} says ${values[i]}` : name), slider, track, told);
    box.append(row);
    slider.oninput = draw;
    return { slider, bar, told };
  });
  function draw() {
    const scores = rows.map((row) => Number(row.slider.value));
    const result = attend([[1]], scores.map((s) => [s]), (values.length ? values : scores.map(() => 0)).map((v) => [v]));
    rows.forEach((row, i) => {
      const weight = result.weights[0][i];
      row.bar.style.width = `${100 * weight}%`;
      row.told.textContent = `score ${scores[i].toFixed(1)}, share ${weight.toFixed(3)}`;
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
