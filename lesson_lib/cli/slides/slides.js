// Formulas, code on demand, and a last guard: where this machine's fonts are wider, text shrinks, never below its floor.
document.querySelectorAll(".tex").forEach((e) => {
  const spoken = e.closest("aside.notes"); // the speaker's window has no style sheet for formulas: MathML needs none
  katex.render(e.textContent, e, {
    displayMode: "display" in e.dataset, output: spoken ? "mathml" : "htmlAndMathml", throwOnError: false, strict: false,
  });
});

const DOWN = [1.4, 1.3, 1.2, 1.1, 1, 0.96, 0.92, 0.88, 0.84, 0.8, 0.76, 0.72];

function full(body) {
  const end = Math.max(...[...body.children].map((e) => e.offsetTop + e.offsetHeight)) - body.offsetTop;
  return end > body.clientHeight + 1 || body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
}

function fit(section) {
  const body = section && section.querySelector(".body");
  if (!body) return;
  section.querySelectorAll(".formula").forEach((formula) => {
    formula.style.setProperty("--f", 1);
    if (formula.scrollWidth > formula.clientWidth) {
      formula.style.setProperty("--f", Math.max(0.67, (0.99 * formula.clientWidth) / formula.scrollWidth));
    }
  });
  const scale = Number(section.dataset.scale || 1);
  section.style.setProperty("--s", scale);
  for (const s of DOWN.filter((s) => s < scale)) {
    if (!full(body)) break;
    section.style.setProperty("--s", s);
  }
}

// A timer on the slides on which everybody works: key T starts and stops it, and it begins anew when the slide is left.
let ticking = 0;
function shown() { const slide = Reveal.getCurrentSlide(); return slide && slide.querySelector(".timer"); }
function stop() { clearInterval(ticking); ticking = 0; }
function write(timer, left) {
  timer.dataset.left = left;
  timer.textContent = `${Math.floor(Math.max(left, 0) / 60)}:${String(Math.max(left, 0) % 60).padStart(2, "0")}`;
  timer.classList.toggle("over", left <= 0);
}
function startOrStop() {
  const timer = shown();
  if (!timer) return;
  if (ticking) { stop(); return; }
  const end = Date.now() + 1000 * Number(timer.dataset.left ?? 60 * timer.dataset.minutes);
  ticking = setInterval(() => {
    const left = Math.round((end - Date.now()) / 1000);
    write(timer, left);
    if (left <= 0) stop();
  }, 200);
}
function again(slide) { const timer = slide && slide.querySelector(".timer"); if (timer) write(timer, 60 * timer.dataset.minutes); }

function folded() { return Reveal.getCurrentSlide().querySelector("[popover]"); }
function close() { document.querySelectorAll(":popover-open").forEach((e) => e.hidePopover()); }

Reveal.on("ready", (event) => fit(event.currentSlide));
Reveal.on("slidechanged", (event) => { close(); stop(); again(event.previousSlide); fit(event.currentSlide); });
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", backgroundTransition: "none",
  slideNumber: "c/t", controlsTutorial: false, pdfSeparateFragments: false, plugins: [RevealNotes],
}).then(() => {
  Reveal.addKeyBinding({ keyCode: 67, key: "C", description: "Show the code of this slide" }, () => {
    const code = folded();
    if (code) code.togglePopover();
  });
  Reveal.addKeyBinding({ keyCode: 84, key: "T", description: "Start and stop the timer" }, startOrStop);
  return document.fonts.ready;
}).then(() => fit(Reveal.getCurrentSlide()));
