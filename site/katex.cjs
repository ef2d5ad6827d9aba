// One formula a line in, as JSON {tex, display}; one line of HTML out, as JSON {html} or {error}.
const katex = require("katex");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ html: katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: false }) }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
});
