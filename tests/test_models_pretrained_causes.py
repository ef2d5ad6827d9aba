"""Folders that are no model of ours, each with its cause: what lies there in the place of a model, and what
to do."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from lesson_lib import cli
from lesson_lib.models.pretrained import described, new_model, open_model, save_model
from tests.test_models_pretrained import CONFIGS, edited, fields, made, shards, without

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 988097824\n"
)
PEFT = "base_model.model."


def renamed(place, change):
    """The same tensors under other names."""
    tensors = load_file(place / "model.safetensors")
    save_file({change(name): x for name, x in tensors.items()}, place / "model.safetensors")


def adapted(name):
    """As an adapter's library calls the weights that it has wrapped."""
    stem, dot, last = name.rpartition(".")
    return PEFT + (f"{stem}.base_layer{dot}{last}" if "q_proj" in name else name)


def only(place, **files):
    """Nothing but these files, `_` in the place of the last dot."""
    for path in place.iterdir():
        path.unlink()
    for name, text in files.items():
        (place / ".".join(name.rsplit("_", 1))).write_text(text)


def other_head(place, **more):
    """As a classifier of texts is saved: `score` in the place of the table of logits."""
    fields(place, architectures=["LlamaForSequenceClassification"], **more)
    edited(place, lambda t: (t.pop("lm_head.weight"), t.update({"score.weight": torch.zeros(3, 16)})))


ADAPTER = json.dumps({"base_model_name_or_path": "maker/model", "peft_type": "LORA"})
FOLDERS = {
    "a pointer": ("llama", lambda p: (p / "model.safetensors").write_text(POINTER), ValueError,
     r"model.safetensors is a pointer of git-lfs, .* 988,097,824 bytes.*: run git lfs pull in"),
    "a pointer in the index's place": ("llama",
     lambda p: (shards(p) / "model.safetensors.index.json").write_text(POINTER), ValueError,
     "model.safetensors.index.json is a pointer of git-lfs"),
    "a web page": ("llama",
     lambda p: (p / "model.safetensors").write_text("\n<!DOCTYPE html>\n<html>Sign in</html>"), ValueError,
     "model.safetensors is a web page, saved under this name; fetch the file itself"),
    "names of an adapter's library": ("llama", lambda p: renamed(p, adapted), ValueError,
     r"base_model\.model\..* adapter of peft that is not merged.*merge_and_unload\(\).*open that"),
    "its names, merged": ("llama", lambda p: renamed(p, lambda name: PEFT + name), ValueError,
     r"base_model\.model\..* peft"),
    "weights of an adapter among the others": ("llama",
     lambda p: edited(p, lambda t: t.update({"model.layers.0.mlp.up_proj.lora_A.weight": torch.ones(2)})),
     ValueError, r"lora_A.weight .* adapter of peft that is not merged"),
    "names of another wrapper": ("llama", lambda p: renamed(p, lambda name: f"module.{name}"), ValueError,
     "embed_tokens.weight is missing.*'module.' stands before .*module.model.embed_tokens.weight"),
    "classes of texts": ("llama", other_head, ValueError,
     r"architectures has 'LlamaForSequenceClassification', .* head .*LlamaForCausalLM"),
    "classes of texts, and a page that does not say so": ("llama",
     lambda p: (other_head(p), without(p, "architectures")), ValueError,
     "lm_head.weight is missing in model.safetensors.*score.weight is another head"),
    "a head that the page does not name": ("bert", lambda p: without(p, "architectures"), ValueError,
     "cls.predictions.* has no place in a bert .*, whose architectures name no model with this head"),
    "no head at all": ("llama",
     lambda p: (fields(p, architectures=["LlamaModel"]), edited(p, lambda t: t.pop("lm_head.weight"))),
     ValueError,
     "lm_head.weight is missing .*a LlamaModel is saved without its read-out; take the folder of"),
    "a tied page with another head": ("llama", lambda p: fields(p, tie_word_embeddings=True), ValueError,
     r"lm_head.weight should be the same as embed_tokens.weight .*, and is not; .*embeddings: false"),
    "GGUF only": ("llama", lambda p: only(p, Q4_K_M_gguf="GGUF", README_md=""), FileNotFoundError,
     "only Q4_K_M.gguf, .*GGUF.* llama.cpp.*safetensors"),
    "an adapter only": ("llama", lambda p: only(p, adapter_config_json=ADAPTER, adapter_model_safetensors=""),
     FileNotFoundError, r"adapter only \(adapter_config.json\), .*'maker/model'.* merge"),
    "an adapter beside a model": ("llama",
     lambda p: [(p / name).write_text(ADAPTER) for name in ("adapter_config.json", "adapter_model.bin")],
     ValueError, "adapter_model.bin.* beside .*merge"),
    "shards without their index": ("llama", lambda p: (shards(p) / "model.safetensors.index.json").unlink(),
     FileNotFoundError, "has neither .*; it has model-0.safetensors: fetch the index, too"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_no_model_of_ours_says_why(name, tmp_path, capsys):
    family, spoil, kind, said = FOLDERS[name]
    model = made(family)
    if family == "gpt2":  # that one is not saved here
        (tmp_path / "config.json").write_text(json.dumps(CONFIGS["gpt2"]))
        save_file({"transformer.wte.weight": torch.zeros(41, 16)}, tmp_path / "model.safetensors")
    else:
        save_model(model, tmp_path)
    spoil(tmp_path)
    with pytest.raises(kind, match=said) as error:
        open_model(tmp_path)
    assert len(str(error.value)) < 500 and "\n" not in str(error.value)
    assert cli.main(["model", str(tmp_path)]) == 1  # which reads names and shapes alone
    assert re.search(said, capsys.readouterr().err)


def test_a_tied_page_with_the_same_head_twice_opens(tmp_path):
    save_model(made("llama"), tmp_path)
    fields(tmp_path, tie_word_embeddings=True)
    table = load_file(tmp_path / "model.safetensors")["model.embed_tokens.weight"]
    edited(tmp_path, lambda t: t.update({"lm_head.weight": table.clone()}))
    assert "by the table of embeddings" in described(open_model(tmp_path, read=False))
    assert open_model(tmp_path).options.tied
    for other in (table[:-1], torch.cat((table[:-1], table[-1:] + 1e-3))):  # one row differs, the last
        edited(tmp_path, lambda t, other=other: t.update({"lm_head.weight": other.clone()}))
        for read in (True, False):
            with pytest.raises(ValueError, match=r"should be the same as embed_tokens.weight"):
                open_model(tmp_path, read=read)


def test_a_pointer_in_the_tokenizers_place_is_told(tmp_path):
    save_model(new_model(CONFIGS["llama"]), tmp_path)
    (tmp_path / "tokenizer.json").write_text(POINTER)
    model = open_model(tmp_path)
    assert "tokenizer.json is a pointer of git-lfs" in described(model)
    with pytest.raises(ValueError, match="git lfs pull"):
        model.numbers("a text")
