// Formulas, code on demand, and a last guard: where this machine's fonts are wider, text shrinks, never below its floor.
document.querySelectorAll(".tex").forEach((e) => {
  const spoken = e.closest("aside.notes"); // the speaker's window has no style sheet for formulas: MathML needs none
  katex.render(e.textContent, e, {
    displayMode: "display" in e.dataset, output: spoken ? "mathml" : "htmlAndMathml", throwOnError: false, strict: false,
  });
});

const DOWN = [1.2, 1.1, 1, 0.96, 0.92, 0.88, 0.84, 0.8, 0.76, 0.72];

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

function folded() { return Reveal.getCurrentSlide().querySelector("[popover]"); }
function close() { document.querySelectorAll(":popover-open").forEach((e) => e.hidePopover()); }

Reveal.on("ready", (event) => fit(event.currentSlide));
Reveal.on("slidechanged", (event) => { close(); fit(event.currentSlide); });
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", backgroundTransition: "none",
  slideNumber: "c/t", controlsTutorial: false, pdfSeparateFragments: false, plugins: [RevealNotes],
}).then(() => {
  Reveal.addKeyBinding({ keyCode: 67, key: "C", description: "Show the code of this slide" }, () => {
    const code = folded();
    if (code) code.togglePopover();
  });
  return document.fonts.ready;
}).then(() => fit(Reveal.getCurrentSlide()));
