"""Every link of README, guide and notebooks leads to a file; the tool that asks the web finds what does not
answer."""

import http.server
import threading

import nbformat
import pytest

from lesson_lib.cli import sources
from tools import links

PAGES = links.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(links.ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert links.broken(links.text_of(page), page.parent) == []


def test_pages_of_every_kind_are_looked_at():
    folders = {page.parent.relative_to(links.ROOT).as_posix() for page in PAGES}
    assert folders >= {".", "class", "notebooks/instructor"}
    assert {target.path for target in sources.targets()} <= set(PAGES)


def test_evidence_is_looked_at(tmp_path):
    cells = [nbformat.v4.new_markdown_cell("[part](../02a_gone.ipynb)")]
    page = tmp_path / "notebooks" / "evidence" / "02_scoring_evidence.ipynb"
    page.parent.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), page)
    assert links.pages(tmp_path) == [page]
    assert links.broken(links.text_of(page), page.parent) == ["../02a_gone.ipynb"]


def test_a_broken_link_is_named(tmp_path):
    (tmp_path / "there.ipynb").write_text("{}")
    text = "[a](there.ipynb) [b](https://example.org) [c](missing.ipynb#part) [d](#here)"
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("'[e](no_link)'")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "02.ipynb")
    assert links.broken(links.text_of(tmp_path / "02.ipynb"), tmp_path) == ["missing.ipynb"]


class Half(http.server.BaseHTTPRequestHandler):
    """A site with one page."""

    def do_GET(self):
        self.send_response(200 if self.path == "/there" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_an_address_that_does_not_answer_is_named_with_its_page(tmp_path, monkeypatch, capsys):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Half) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        port = site.server_port
        monkeypatch.setattr(links, "addresses", lambda text: set(text.split()))
        (tmp_path / "README.md").write_text(f"http://127.0.0.1:{port}/there http://127.0.0.1:{port}/gone")
        assert links.main(tmp_path) == 1
        said = capsys.readouterr().out
        assert f"http://127.0.0.1:{port}/gone (README.md): HTTP Error 404" in said and "/there" not in said
        assert "2 addresses, 1 without an answer" in said
        (tmp_path / "README.md").write_text(f"http://127.0.0.1:{port}/there")
        assert links.main(tmp_path) == 0
        site.shutdown()
