"""`python -m lesson_lib model FOLDER`: what a published model is, and, if asked, how it continues a text."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.models.pretrained import described, generate, open_model
from lesson_lib.models.pretrained.fields import UnknownFields


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="such as one that `hf download` has made")
    parser.add_argument("--text", help="continue this text, by the likeliest tokens (needs tokenizers)")
    parser.add_argument("--length", type=int, default=20, metavar="N", help="tokens to add (default: 20)")
    parser.add_argument(
        "--ignore", nargs="*", default=(), metavar="FIELD", help="fields of config.json that change nothing"
    )


def main(folder: Path, *, text: str | None = None, length: int = 20, ignore: Sequence[str] = ()) -> int:
    """Describe the model; 1 after a sentence where it cannot be opened."""
    try:
        model = open_model(folder, ignore=ignore, read=text is not None)
        print(described(model, name=folder.resolve().name))
        if text is not None:
            numbers = model.numbers(text)
            generated = generate(model, numbers.to(next(model.parameters()).device), length)
            print(f"\n{text}|{model.text.decode(generated.tolist())}")
    except UnknownFields as error:
        print(f"{error.said}, add --ignore {shlex.join(error.names)}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
