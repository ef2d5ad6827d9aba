"""How Sphinx makes pages of what lesson_lib/cli/site has laid out beside this file (build/site-source)."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = Path(sys.prefix)  # .venv-site: node, and the packages of package.json

project = "Attention"
language = "en"
extensions = ["myst_nb"]
exclude_patterns = ["_build", "README.md"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
html_theme = "furo"
html_title = "One function: attention"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_extra_path = ["_extra"]  # pictures, downloads
html_css_files = ["katex/katex.min.css", "fonts.css", "chinese.css", "card.css", "site.css"]
html_js_files = [
    ("attend.js", {"defer": "defer"}),
    ("player.js", {"defer": "defer"}),
    ("site.js", {"defer": "defer"}),
]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_search_summary = False  # it would fetch the pages' sources, which fails from the file system
FONTS = {
    "font-stack": '"Course Sans", system-ui, -apple-system, "Segoe UI", Arial, "Noto Sans SC", sans-serif',
    "font-stack--monospace": (
        '"Course Code", ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans SC", monospace'
    ),
}
html_theme_options = {"navigation_with_keys": False, "light_css_variables": FONTS}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

nb_execution_mode = "off"
nb_output_stderr = "show"
nb_code_prompt_show = "Show this code"
nb_code_prompt_hide = "Hide this code"
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "text/plain", 10)]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure"]


class Formulas:
    """KaTeX in one node process: formulas are made when the site is built, and need no script in the page."""

    def __init__(self):
        self.made = {}
        self.node = None

    def html(self, tex, display):
        if (tex, display) not in self.made:
            if self.node is None:
                words = [str(TOOLS / "bin" / "node"), str(HERE / "katex.cjs")]
                options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
                paths = {"NODE_PATH": str(TOOLS / "node_modules"), "PATH": str(TOOLS / "bin")}
                self.node = subprocess.Popen(words, env=paths, encoding="utf-8", **options)
            self.node.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
            self.node.stdin.flush()
            said = json.loads(self.node.stdout.readline())
            if "error" in said:
                raise ValueError(f"{said['error']} in the formula {tex}")
            self.made[tex, display] = said["html"]
        return self.made[tex, display]


def apart(tex):
    """The formulas that stand side by side in a line, each alone: a phone breaks the line there."""
    parts = [part.strip() for part in tex.split(r"\qquad") if part.strip()]
    whole = all(part.count("{") == part.count("}") and r"\begin" not in part for part in parts)
    return parts if whole else [tex]


def setup(app):
    """Formulas by KaTeX; it gives each the MathML that a screen reader says."""
    from docutils import nodes

    formulas = Formulas()

    def inline(self, node):
        self.body.append(formulas.html(node.astext(), False))
        raise nodes.SkipNode

    def display(self, node):
        parts = apart(node.astext())
        made = "".join(f"<span>{formulas.html(part, True)}</span>" for part in parts)
        several = " several" if len(parts) > 1 else ""
        self.body.append(f'<div class="formula{several}">{made}</div>')
        raise nodes.SkipNode

    app.add_html_math_renderer("katex", (inline, None), (display, None))
    app.config.html_math_renderer = "katex"
    app.connect("build-finished", mend)


# What the theme and myst-nb write, and what a reader of the screen needs: levels of headings, names that are
# those one sees, and regions that scroll and can be reached by Tab.
MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    "<pre>": '<pre tabindex="0">',
    '<div class="formula': '<div tabindex="0" class="formula',
}
FURO = re.compile(r'Made with\s*<a href="[^"]*">Furo</a>')
TITLE = re.compile(r"<title>(.*?)( - [^<]*)?</title>")


def mend(app, error):
    """Mend the pages that were written, sign them, and say in their heads what a link to them shows."""
    if error is not None:
        return
    out = Path(app.outdir)
    told = json.loads((HERE / "told.json").read_text("utf-8"))
    signed = json.loads((HERE / "signed.json").read_text("utf-8"))
    for path in out.rglob("*.html"):
        name = path.relative_to(out).with_suffix("").as_posix()
        text = path.read_text(encoding="utf-8")
        for old, new in MENDED.items():
            text = text.replace(old, new)
        text = FURO.sub(signed["line"], text)
        title = TITLE.search(text)
        if title and name in told:
            picture = "../" * name.count("/") + "preview.png"
            head = {
                "og:title": title[1],
                "og:description": told[name],
                "og:image": picture,
                "og:type": "article",
            }
            tags = "".join(
                f'<meta property="{key}" content="{html.escape(html.unescape(value), quote=True)}">'
                for key, value in head.items()
            )
            said = html.escape(told[name], quote=True)
            tags += f'<meta name="description" content="{said}">'
            tags += '<meta name="twitter:card" content="summary_large_image">'
            text = text.replace("</title>", f"</title>{tags}", 1)
        path.write_text(text, encoding="utf-8")
    found = (
        out / "search.html"
    )  # a line of each page, as a script: pages of the file system may fetch nothing
    lines = json.dumps(told, ensure_ascii=False).replace("</", "<\\/")
    script = f"<script>const EXCERPTS = {lines};</script>"
    found.write_text(found.read_text("utf-8").replace("</head>", f"{script}</head>", 1), encoding="utf-8")
