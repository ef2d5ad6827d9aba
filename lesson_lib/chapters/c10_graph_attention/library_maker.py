"""Makes library.npz from the standard library of the Python that runs it:

    python -m lesson_lib.chapters.c10_graph_attention.library_maker

The shipped file was made with Python 3.11; another version gives another graph of the same form. The source
is parsed and never imported. See `library` for what a node, an edge, a word and a class are, and for the rule
of the split. Docstrings are the work of Python's authors; what is stored is how often a word occurs in each.
"""

import ast
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy

HERE = Path(__file__).parent
CHAPTERS = {  # chapter of the library reference, in short -> its modules with Python source
    "numbers": "_pydecimal fractions numbers random statistics",
    "files": (
        "filecmp fileinput fnmatch genericpath glob linecache ntpath pathlib posixpath shutil stat tempfile"
    ),
    "archives": "_compression bz2 gzip lzma tarfile zipfile",
    "system": "_pyio argparse ctypes curses getopt getpass logging optparse os platform",
    "concurrency": "_threading_local concurrent multiprocessing queue sched subprocess threading",
    "protocols": (
        "ftplib http imaplib ipaddress poplib smtplib socketserver urllib uuid webbrowser wsgiref xmlrpc"
    ),
    "language": "ast compileall dis pickletools py_compile pyclbr symtable tabnanny tokenize",
}
MODULES = {module: chapter for chapter, modules in CHAPTERS.items() for module in modules.split()}
LEFT_OUT = {"test", "tests", "__pycache__", "idle_test"}  # folders
FAMILIES = (  # modules that repeat each other's sentences count as one
    "genericpath ntpath posixpath",
    "_compression bz2 gzip lzma",
    "_threading_local threading",
)
AT_LEAST = 4  # a word must occur in so many families
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Node(NamedTuple):
    """A function, method or class that has a docstring."""

    name: str  # with its module: shutil.copytree, pathlib.Path.glob
    module: str  # email.parser
    words: tuple[str, ...]


def sources(folder: Path) -> dict[str, ast.Module]:
    """The parsed files of all MODULES in a folder, by their dotted names."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[0] in MODULES and not LEFT_OUT & {*parts}:
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    return found


def definitions(name: str, tree: ast.Module) -> Iterator[tuple[str, Definition, str]]:
    """(full name, definition, name of its class or '') of a module's functions and classes, and of the
    methods of these."""
    for node in tree.body:
        if isinstance(node, Definition):
            yield f"{name}.{node.name}", node, ""
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, Definition):
                        yield f"{name}.{node.name}.{method.name}", method, f"{name}.{node.name}"


def split_words(text: str) -> list[str]:
    """The words of a docstring with three letters or more, in lower case, without lines that begin with >>>.

    >>> split_words("Copy 2 files, as a tree.")
    ['copy', 'files', 'tree']
    """
    prose = re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", " ", text).lower()
    return re.findall(r"[a-z]{3,}", prose)


def family(node: Node) -> str:
    """What the split keeps together: the package, or the module, or the FAMILY of modules.

    >>> family(Node("bz2.open", "bz2", ())), family(Node("json.tool.main", "json.tool", ()))
    ('_compression bz2 gzip lzma', 'json')
    """
    first = node.module.split(".")[0]
    return next((family for family in FAMILIES if first in family.split()), first)


def _names(name: str, tree: ast.Module, is_package: bool) -> dict[str, str]:
    """What a module's own names stand for: its definitions, and what it imports."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".") if is_package else name.split(".")[:-1]
            base = base[: len(base) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            known |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
    return known | {
        full.removeprefix(name + "."): full for full, _, owner in definitions(name, tree) if not owner
    }


def _dotted(node: ast.AST) -> str:
    """`a.b.c` of an expression that is nothing but names, else ''."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


class _Resolver:
    """From a name in a module's source to the node that it stands for."""

    def __init__(self, trees: Mapping[str, ast.Module], packages: set[str]) -> None:
        self.names = {name: _names(name, tree, name in packages) for name, tree in trees.items()}
        self.known = {full for name, tree in trees.items() for full, _, _ in definitions(name, tree)}

    def find(self, module: str, dotted: str) -> str:
        first, *rest = dotted.split(".")
        start = self.names[module].get(first, "")
        return self._follow(".".join([start, *rest])) if start else ""

    def _follow(self, full: str, steps: int = 4) -> str:
        """The definition behind a full name, through modules that only pass it on; '' if there is none."""
        if full in self.known or not steps:
            return full if full in self.known else ""
        parts = full.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module, rest = ".".join(parts[:cut]), parts[cut:]
            if module in self.names and rest[0] in self.names[module]:
                return self._follow(".".join([self.names[module][rest[0]], *rest[1:]]), steps - 1)
        return ""


def graph(folder: Path) -> tuple[list[Node], set[tuple[int, int]]]:
    """The nodes, and the pairs (i, j), i < j, of which one's source uses the other. A docstring of the same
    words as one in another family is left out."""
    trees = sources(folder)
    packages = {name for name in trees if (folder / Path(*name.split("."))).is_dir()}
    nodes, bodies, first = [], {}, {}
    for name, tree in trees.items():
        for full, node, owner in definitions(name, tree):
            made = Node(full, name, tuple(split_words(ast.get_docstring(node) or "")))
            at_home = first.setdefault(frozenset(made.words), family(made)) == family(made)
            if len(set(made.words)) >= 3 and full not in bodies and at_home:
                bodies[full] = (name, node, owner)
                nodes.append(made)
    number, resolver = {node.name: i for i, node in enumerate(nodes)}, _Resolver(trees, packages)
    pairs = set()
    for full, (module, node, owner) in bodies.items():
        if owner in number:  # a class's source has its methods in it
            pairs.add((min(number[owner], number[full]), max(number[owner], number[full])))
        for used in _used(node):
            first, _, rest = used.partition(".")
            target = (
                f"{owner}.{rest.split('.')[0]}" if first in ("self", "cls") else resolver.find(module, used)
            )
            i, j = number[full], number.get(target, number[full])
            if i != j:
                pairs.add((min(i, j), max(i, j)))
    return nodes, pairs


def _used(node: Definition) -> set[str]:
    """The dotted names in a definition's source. A class's own source are its bases, decorators and
    statements, without its methods, which are nodes themselves."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.ClassDef):
        inner = [part for part in node.body if not isinstance(part, Definition)]
        parts = [*node.bases, *node.decorator_list, *inner]
    found = {_dotted(part) for whole in parts for part in ast.walk(whole)}
    return {name for name in found if name}


def vocabulary(nodes: list[Node]) -> list[str]:
    """The words of the features: those of at least AT_LEAST modules, without the names of modules."""
    seen = Counter(word for word, _ in {(word, family(node)) for node in nodes for word in node.words})
    hidden = {word for node in nodes for word in split_words(node.module.replace("_", " "))}
    return sorted(word for word, modules in seen.items() if modules >= AT_LEAST and word not in hidden)


def made(folder: Path | None = None) -> dict[str, Any]:
    """The arrays of the file, from a folder of sources, or from this Python's own."""
    nodes, pairs = graph(folder or Path(sysconfig.get_paths()["stdlib"]))
    words = vocabulary(nodes)
    place = {word: i for i, word in enumerate(words)}
    counts = [Counter(place[word] for word in node.words if word in place) for node in nodes]
    families, chapters = sorted({family(node) for node in nodes}), list(CHAPTERS)
    return {
        "names": numpy.array([node.name for node in nodes]),
        "words": numpy.array(words),
        "chapters": numpy.array(chapters),
        "families": numpy.array(families),
        "family_of": numpy.array([families.index(family(node)) for node in nodes], dtype=numpy.int16),
        "chapter_of": numpy.array(
            [chapters.index(MODULES[name.split()[0]]) for name in families], dtype=numpy.int8
        ),
        "words_in": numpy.array([len(count) for count in counts], dtype=numpy.int16),
        "word": numpy.array([w for count in counts for w in sorted(count)], dtype=numpy.int16),
        "count": numpy.array(
            [min(count[w], 255) for count in counts for w in sorted(count)], dtype=numpy.uint8
        ),
        "pairs": numpy.array(sorted(pairs), dtype=numpy.int16).T,
    }


if __name__ == "__main__":
    numpy.savez_compressed(HERE / "library.npz", **made())
