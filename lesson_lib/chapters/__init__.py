"""The chapters: what serves one of them alone, a folder for each.

    questions/NAME.md     the words of what a part asks; questions/exercises.md of the chapter's exercises
    questions/NAME.py     what of these is code: solutions, inputs, wrong functions that no edit makes
    figures.py            its figures; NAME_figures.py: those of one subject
    NAME_explorer.py      a widget
    NAME.py               a model or a data set
    experiments/NAME.py   what is trained or measured, with its recipe; results/NAME.json what came out

A chapter imports what is shared, and never another chapter (pyproject.toml, importlinter).
"""
