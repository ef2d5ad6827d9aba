"""Why a folder is not opened: what lies there in the place of a published model, and what to do. Each
function gives a sentence, or its end; "" where it sees no cause."""

import json
import re
from collections.abc import Collection
from pathlib import Path

MERGE = "merge the two with peft, merge_and_unload(), save that, and open that folder"
ADAPTER = ("adapter_model.safetensors", "adapter_model.bin")
# what peft adds to the names of a model's tensors
OF_PEFT = re.compile(r"^base_model\.model\.|\.(base_layer|lora_[A-Za-z_]+|modules_to_save)\.")
HEADS = ("score.", "classifier.", "qa_outputs.", "multiple_choice_head.", "v_head.")
OTHERS = {
    "bin": "a pickle, which can run any code, and is not opened",
    "pt": "a pickle, which can run any code, and is not opened",
    "pth": "a pickle, which can run any code, and is not opened",
    "h5": "a file of TensorFlow, and is not opened; take model.safetensors",
    "msgpack": "a file of Flax, and is not opened; take model.safetensors",
    "onnx": "a file of ONNX, and is not opened; take model.safetensors",
}


def in_place_of(path: Path) -> str:
    """What a file is where it is not what its name says."""
    with path.open("rb") as file:
        start = file.read(300)
    if start.startswith(b"version https://git-lfs"):
        size = re.search(rb"size (\d+)", start)
        whole = f"{int(size[1]):,} bytes" if size else "the file"
        return (
            f"{path.name} is a pointer of git-lfs, a few lines in the place of {whole}: run git lfs pull in"
            f" {path.parent}, or fetch the folder with hf download"
        )
    if re.match(rb"\s*(<!doctype html|<html)", start, re.IGNORECASE):
        return f"{path.name} is a web page, saved under this name; fetch the file itself"
    return ""


def without_weights(folder: Path) -> str:
    """What a folder holds in the place of weights that can be opened."""
    if adapter := [name for name in ("adapter_config.json", *ADAPTER) if (folder / name).exists()]:
        return f"; it holds an adapter only ({adapter[0]}), which changes {_changed(folder)}: {MERGE}"
    if shards := sorted(folder.glob("*-[0-9]*.safetensors")):
        return f"; it has {shards[0].name}: fetch the index, too"
    for ending, what in OTHERS.items():
        if found := sorted(folder.glob(f"*.{ending}")):
            return f"; {found[0].name} is {what}"
    if found := sorted(folder.glob("*.gguf")):
        return (
            f"; it has only {found[0].name}, weights in GGUF, the format of llama.cpp: take the folder with"
            " safetensors that they were made from"
        )
    return ""


def beside_weights(folder: Path) -> str:
    """The sentence on an adapter that lies beside a whole model."""
    for name in ADAPTER:
        if (folder / name).exists():
            return (
                f"{folder} has {name}, an adapter, beside the weights of a model: {MERGE}; or take the"
                " adapter's files away, and open the model without it"
            )
    return ""


def of_peft(names: Collection[str]) -> str:
    """The sentence on names that peft has made."""
    for name in names:
        if OF_PEFT.search(name):
            return f"{name} is of a model with an adapter of peft that is not merged: {MERGE}"
    return ""


def missing(name: str, names: Collection[str], prefix: str, architectures: Collection[str]) -> str:
    """Why a tensor of that name is not among these, where `prefix` is what may stand before each."""
    longer = next((other for other in names if other.endswith(f".{name}")), "")
    before = longer.removesuffix(name).removesuffix(prefix)
    if before and sum(other.startswith(before) for other in names) > len(names) / 2:
        return (
            f"; {before!r} stands before the names of the file, as in {longer}: it was saved from inside"
            " another module; save the inner one"
        )
    if not name.startswith("lm_head."):
        return ""
    if other := head(names):
        return f"; {other} is another head, which is not opened; take the model that it was made from"
    if any(re.search(r"(?<!LMHead)Model$", each) for each in architectures):
        return f"; a {architectures[0]} is saved without its read-out; take the folder of the whole model"
    return "; if its logits come by the table of embeddings, config.json should say tie_word_embeddings: true"


def without_place(name: str, own: tuple[str, ...]) -> str:
    """Why a tensor has no place: it is one of the family's `own` heads, which the page does not name, or that
    of another task."""
    if name.startswith(own):
        return ", whose architectures name no model with this head"
    return ", since it is another head" if head([name]) else ""


def head(names: Collection[str]) -> str:
    """The first name of a head of another task: classes of texts, answers, rewards."""
    return next((name for name in sorted(names) if name.startswith(HEADS)), "")


def _changed(folder: Path) -> str:
    """Whose weights an adapter changes, as far as it says so."""
    try:
        base = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        return f"the weights of {base['base_model_name_or_path']!r}"
    except (OSError, ValueError, KeyError, TypeError):
        return "the weights of another folder"
