// Letters of a vote, formulas, a clock. Where this machine's fonts are wider, a slide's text shrinks.
// Paragraphs that begin with a letter and a bracket are options.
document.querySelectorAll(".slides p").forEach((first) => {
  const letter = (p) => p?.tagName === "P" && /^\s*[a-e]\)\s/.test(p.textContent);
  if (!letter(first) || letter(first.previousElementSibling) || first.closest("aside.notes, .fragment")) return;
  const list = document.createElement("ol"), long = [];
  list.className = "letters";
  first.before(list);
  for (let p = first, next; letter(p); p = next) {
    next = p.nextElementSibling;
    const row = document.createElement("li"), mark = document.createElement("b"), words = document.createElement("span");
    mark.textContent = p.textContent.trim()[0];
    words.append(...p.childNodes);
    const text = document.createTreeWalker(words, NodeFilter.SHOW_TEXT).nextNode();
    text.data = text.data.replace(/^\s*[a-e]\)\s*/, "");
    row.append(mark, words);
    list.append(row);
    long.push(words.textContent.length > 46);
    p.remove();
  }
  list.classList.toggle("long", long.some(Boolean));
});
// The speaker's window has no style for formulas: there they are MathML.
for (const [place, output] of [[".slides section > :not(aside)", "htmlAndMathml"], ["aside.notes", "mathml"]])
  document.querySelectorAll(place).forEach((one) => renderMathInElement(one, {
    output, throwOnError: false, strict: false,
    delimiters: [{ left: "$$", right: "$$", display: true }, { left: "$", right: "$", display: false }],
  }));
// Key T starts and stops the clock of a slide; it begins anew when the slide is left.
let ticking = 0;
const clock = () => Reveal.getCurrentSlide()?.querySelector(".timer");
function stop() { clearInterval(ticking); ticking = 0; }
function write(timer, left) {
  timer.dataset.left = left;
  timer.textContent = `${Math.floor(Math.max(left, 0) / 60)}:${String(Math.max(left, 0) % 60).padStart(2, "0")}`;
  timer.classList.toggle("over", left <= 0);
}
function startOrStop() {
  const timer = clock();
  if (!timer || ticking) return stop();
  const end = Date.now() + 1000 * Number(timer.dataset.left ?? 60 * timer.dataset.minutes);
  ticking = setInterval(() => {
    const left = Math.round((end - Date.now()) / 1000);
    write(timer, left);
    if (left <= 0) stop();
  }, 200);
}
function fit(slide) {
  if (!slide || slide.matches(".stack")) return;
  for (const pre of slide.querySelectorAll(":scope > :not(aside) pre")) {
    const wide = () => pre.scrollWidth > pre.clientWidth + 1;
    for (let px = 25; px > 15 && wide(); px -= 1) pre.style.fontSize = `${px}px`;
    if (wide()) pre.style.whiteSpace = "pre-wrap";
  }
  for (let zoom = 1; zoom > 0.6; zoom -= 0.05) {
    [...slide.children].forEach((child) => { if (!child.matches(".timer, aside")) child.style.zoom = zoom; });
    const ends = [...slide.children].filter((one) => one.offsetHeight && !one.matches("aside")).map((one) => one.getBoundingClientRect());
    const box = slide.getBoundingClientRect();
    const low = box.bottom - parseFloat(getComputedStyle(slide).paddingBottom) * Reveal.getScale() + 2; // the clock's room
    if (ends.every((end) => end.right <= box.right + 1 && end.bottom <= low)) break;
  }
}
if (typeof Reveal !== "undefined") present(); // a script on paper shows the same slides
function present() {
  Reveal.on("ready", (event) => fit(event.currentSlide));
  Reveal.on("slidechanged", ({ previousSlide, currentSlide }) => {
    stop();
    const old = previousSlide?.querySelector(".timer");
    if (old) write(old, 60 * old.dataset.minutes);
    fit(currentSlide);
  });
  Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", backgroundTransition: "none",
    slideNumber: "c/t", controlsTutorial: false, pdfSeparateFragments: false, plugins: [RevealNotes],
  }).then(() => {
    Reveal.addKeyBinding({ keyCode: 84, key: "T", description: "Start and stop the clock" }, startOrStop);
    return document.fonts.ready;
  }).then(() => fit(Reveal.getCurrentSlide()));
}
