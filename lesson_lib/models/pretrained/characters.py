"""Texts as characters: the tokenizer.json of a model that reads signs one by one, without the tokenizers
package, which opens the same file."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Characters:
    """A number for each character, and one for the start of a text, if the file has it.

    `encode` and `decode` are those of a `tokenizers.Tokenizer`. Raises ValueError for a character that the
    model does not know.
    """

    def __init__(self, numbers: dict[str, int], start: int | None = None) -> None:
        self.numbers, self.start = numbers, start
        self.signs = {number: sign for sign, number in numbers.items()}

    def encode(self, text: str) -> SimpleNamespace:
        """The numbers of a text, as `.ids`."""
        unknown = sorted(set(text) - self.numbers.keys())
        if unknown:
            known = "".join(sign for sign in self.numbers if len(sign) == 1)
            raise ValueError(f"this model does not know {unknown[0]!r}; it knows {known!r}")
        ids = [] if self.start is None else [self.start]
        return SimpleNamespace(ids=ids + [self.numbers[sign] for sign in text])

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        """The text of numbers; the start of a text is no part of it."""
        skip = self.start if skip_special_tokens else None
        return "".join(self.signs[number] for number in ids if number != skip)

    def save(self, path: str | Path) -> None:
        """Write a tokenizer.json that the tokenizers package reads, too."""
        special = [] if self.start is None else [(self.signs[self.start], self.start)]
        own = {
            "id": None, "content": None, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True,
        }  # fmt: skip
        sequence = {"Sequence": {"id": "A", "type_id": 0}}
        template = {
            "type": "TemplateProcessing",
            "single": [*({"SpecialToken": {"id": sign, "type_id": 0}} for sign, _ in special), sequence],
            "pair": [sequence, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                sign: {"id": sign, "ids": [number], "tokens": [sign]} for sign, number in special
            },
        }
        file = {
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [own | {"id": number, "content": sign} for sign, number in special],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False,
            },
            "post_processor": template if special else None, "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": self.numbers, "unk_token": next(iter(self.numbers))},
        }  # fmt: skip
        Path(path).write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")


def read(file: dict[str, Any]) -> Characters | None:
    """The tokenizer of a tokenizer.json that knows single characters only; None for any other."""
    model, added = file.get("model") or {}, file.get("added_tokens") or []
    special = {one["content"]: one["id"] for one in added}
    plain = model.get("type") == "WordLevel" and file.get("normalizer") is None
    if not plain or len(special) > 1 or any(len(sign) > 1 for sign in model["vocab"].keys() - special.keys()):
        return None
    return Characters(model["vocab"], next(iter(special.values()), None))
