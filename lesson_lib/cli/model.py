"""`python -m lesson_lib model FOLDER`: what a published model is, and, if asked, how it continues a text."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.models.pretrained import described, generate, open_model
from lesson_lib.models.pretrained.fields import UnknownFields


def main(folder: Path, *, text: str | None = None, length: int = 20, ignore: Sequence[str] = ()) -> int:
    """Describe the model; 1 after a sentence where it cannot be opened."""
    try:
        model = open_model(folder, ignore=ignore, read=text is not None)
        print(described(model, name=folder.resolve().name))
        if text is not None:
            numbers = model.numbers(text)
            made = generate(model, numbers.to(next(model.parameters()).device), length)
            print(f"\n{text}|{model.text.decode(made.tolist())}")
    except UnknownFields as error:
        print(f"{error.said}, add --ignore {shlex.join(error.names)}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
