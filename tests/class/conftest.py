"""The class kit is tested in an environment of its own: `.venv-class/bin/python -m pytest tests/class`."""

from importlib.util import find_spec

# Elsewhere these files are no tests: they import what a learner's environment lacks. tests/parts.py says when
# they do not run.
collect_ignore_glob = [] if find_spec("nbgrader") and find_spec("jupyterhub") else ["*.py"]
