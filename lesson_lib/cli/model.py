"""`python -m lesson_lib model FOLDER`: what a published model is, and, if asked, how it continues a text."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lesson_lib.models.pretrained import card, described, generate, open_model
from lesson_lib.models.pretrained.against import compared, parting
from lesson_lib.models.pretrained.fields import UnknownFields
from lesson_lib.models.pretrained.files import read_config


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="such as one that `hf download` has made")
    parser.add_argument("--text", help="continue this text, by the likeliest tokens (needs tokenizers)")
    parser.add_argument(
        "--card",
        dest="card_file",
        type=Path,
        metavar="FILE.svg",
        help="draw what config.json says, of any family, into a file",
    )
    parser.add_argument(
        "--against", choices=["transformers"], help="find the first step at which ours and theirs part"
    )
    parser.add_argument("--length", type=int, default=20, metavar="N", help="tokens to add (default: 20)")
    parser.add_argument(
        "--ignore", nargs="*", default=(), metavar="FIELD", help="fields of config.json that change nothing"
    )


def main(
    folder: Path,
    *,
    text: str | None = None,
    length: int = 20,
    ignore: Sequence[str] = (),
    card_file: Path | None = None,
    against: str | None = None,
) -> int:
    """Describe the model, or draw its card, or compare it; 1 after a sentence where it cannot be opened."""
    try:
        if card_file is not None:
            found = card(read_config(folder), name=folder.resolve().name)
            card_file.write_text(found.svg(), encoding="utf-8")
            print(f"{found}\n\nThe card is {card_file}.")
            return 0
        if against is not None:
            print(parting(compared(folder, ignore=ignore)))
            return 0
        model = open_model(folder, ignore=ignore, read=text is not None)
        print(described(model, name=folder.resolve().name))
        if text is not None:
            numbers = model.numbers(text)
            generated = generate(model, numbers.to(next(model.parameters()).device), length)
            print(f"\n{text}|{model.text.decode(generated.tolist())}")
    except UnknownFields as error:
        print(f"{error.said}, add --ignore {shlex.join(error.names)}", file=sys.stderr)
        return 1
    except (OSError, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
