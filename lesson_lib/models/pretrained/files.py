"""Open a folder with config.json and safetensors, and save one. No tensor is lost: each one in the files has
its place, or is named in `model.left`; each one of the model is in the files."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lesson_lib.device import to_device
from lesson_lib.models.gpt import GPT
from lesson_lib.models.pretrained import causes, characters
from lesson_lib.models.pretrained.config import options
from lesson_lib.models.pretrained.model import Model
from lesson_lib.models.pretrained.names import FAMILIES, Family, as_it_lies, theirs

ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def open_model(
    folder: str | Path,
    *,
    dtype: torch.dtype | None = torch.float32,
    ignore: Iterable[str] = (),
    read: bool = True,
) -> Model:
    """The model of a folder, in eval mode, on the lessons' device.

    The folder holds config.json, the weights as model.safetensors or as shards with an index, and, for text,
    tokenizer.json. `dtype` is what it computes in, whatever the file's is (None: that one). `ignore` names
    fields of config.json that you know to change nothing. `read=False` looks at names and shapes alone,
    within a moment whatever the size (and at a table that the file has twice): the model can be described,
    and computes nothing.
    Raises FileNotFoundError where something is missing, ValueError where something does not fit: each names
    the field, the tensor or the file.
    """
    folder = Path(folder).expanduser()
    config = read_config(folder)
    wanted = options(config, ignore=tuple(ignore))
    family = FAMILIES[wanted.family]
    with torch.device("meta"):
        model = Model(wanted)
    model.config = config
    tensors, left = _collected(model, _Files(folder, read), family, dtype if read else None)
    model.load_state_dict(tensors, assign=True)
    model.left, model.text = left, _tokenizer(folder)
    return (to_device(model) if read else model).eval()


def new_model(config: dict[str, Any]) -> Model:
    """A model with new weights, by a config.json's fields; `save_model` writes it."""
    model = to_device(Model(options(config)))
    model.config = dict(config)
    return model


def save_model(model: Model, folder: str | Path) -> None:
    """Write config.json and model.safetensors, as the model's family publishes them: other libraries open the
    folder, too.

    Raises ValueError for a family whose tensors lie otherwise in the file (`Made`), and a model without a
    config.
    """
    family = FAMILIES[model.options.family]
    tensors = {}
    for name, x in model.state_dict().items():
        made = theirs(name, family.names)
        if made.how is not as_it_lies or made.rows is not None:
            raise ValueError(
                f"a {model.options.family} cannot be saved here: its file holds {made.name} in another form"
            )
        inside = not made.name.startswith(("lm_head.", "cls.", "classifier."))
        tensors[(family.prefix if inside else "") + made.name] = x.detach().cpu().contiguous()
    if not model.config:
        raise ValueError("this model has no config; make it with new_model(config)")
    folder = Path(folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config, indent=2) + "\n", encoding="utf-8")
    save_file(tensors, folder / ONE, metadata={"format": "pt"})


def from_gpt(gpt: GPT) -> Model:
    """Our small GPT with rotary positions as a Starcoder2, whose layers are the same: LayerNorms before the
    sub-layers, GELU, shared keys, rotary positions.

    Two things are put elsewhere. The rows of w_query and w_key change places, since Starcoder2 turns columns
    j and j + d/2 together and ours 2j and 2j + 1. The scale of the embeddings is multiplied into their table,
    which therefore is no longer that of the logits. Raises ValueError where positions are learned."""
    first, d = gpt.encoder.layers[0], gpt.embedding.d_model
    attention = first.attention
    if attention.rotate is None:
        raise ValueError("only a GPT with positions='rotary' becomes a Starcoder2")
    model = new_model({
        "model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"],
        "vocab_size": len(gpt.characters), "hidden_size": d,
        "intermediate_size": first.feed_forward.w_in.out_features,
        "num_hidden_layers": len(gpt.encoder.layers), "num_attention_heads": attention.n_heads,
        "num_key_value_heads": attention.n_key_heads, "hidden_act": "gelu",
        "max_position_embeddings": gpt.context, "norm_epsilon": first.norms[0].eps,
        "sliding_window": None, "tie_word_embeddings": False, "use_bias": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        "bos_token_id": None, "eos_token_id": None,
    })  # fmt: skip
    given = {
        "embedding.table": gpt.embedding.table * d**0.5,
        "read_out.table": gpt.embedding.table,
        "norm.weight": gpt.encoder.norm.weight,
        "norm.bias": gpt.encoder.norm.bias,
    }
    for i, layer in enumerate(gpt.encoder.layers):
        for name, x in layer.state_dict().items():
            kind, _, rest = name.partition(".")
            given[f"layers.{i}.{'before' if kind == 'norms' else kind}.{rest}"] = x
        for name in ("w_query", "w_key"):
            heads = given[f"layers.{i}.attention.{name}.weight"].unflatten(0, (-1, attention.d_k))
            halves = torch.cat((heads[:, ::2], heads[:, 1::2]), 1).flatten(0, 1)
            given[f"layers.{i}.attention.{name}.weight"] = halves
    ours = model.state_dict()  # biases of attention, which a GPT of ours has not, are 0 already
    missing = {name for name in ours if name not in given}
    assert all(name.endswith("bias") and "attention" in name for name in missing), missing
    model.load_state_dict(ours | {name: x.detach().clone() for name, x in given.items()})
    return model.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder. Raises FileNotFoundError or ValueError where there is none that can be
    read."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    path = folder / "config.json"
    if not path.exists():
        deeper = sorted(folder.glob("**/config.json"))[:1]
        hint = f"; there is one in {deeper[0].parent}: give that folder" if deeper else ""
        hint = hint or causes.without_weights(folder)
        raise FileNotFoundError(f"{folder} has no config.json, so it is no published model{hint}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        no_json = f"{path} is no JSON ({error}); fetch it again"
        raise ValueError(causes.in_place_of(path) or no_json) from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} must hold an object with fields, got {type(config).__name__}")
    return config


class _Files:
    """The tensors of a folder, by name, each read when it is asked for; or no more than their shapes."""

    def __init__(self, folder: Path, read: bool) -> None:
        self.read, self.where = read, {}
        index = folder / INDEX
        if (folder / ONE).exists():
            names = {ONE}
        elif index.exists():
            try:
                names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, AttributeError) as error:
                no_index = f"{index} is no index of shards ({error!r}); fetch it again"
                raise ValueError(causes.in_place_of(index) or no_index) from None
        else:
            raise FileNotFoundError(f"{folder} has neither {ONE} nor {INDEX}{causes.without_weights(folder)}")
        if why := causes.beside_weights(folder):
            raise ValueError(why)
        self.open = {name: self._opened(folder / name) for name in sorted(names)}
        for name, file in self.open.items():
            for tensor in file.keys():
                if tensor in self.where:
                    raise ValueError(f"{tensor} is both in {self.where[tensor]} and in {name}")
                self.where[tensor] = name

    def _opened(self, path: Path) -> Any:
        if not path.exists():
            raise FileNotFoundError(f"the shard {path.name} is missing in {path.parent}; fetch it, too")
        try:
            return safe_open(path, framework="pt")
        except SafetensorError as error:
            cut_off = f"{path.name} is cut off or no safetensors file ({error}); fetch it again"
            raise ValueError(causes.in_place_of(path) or cut_off) from None

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._slice(name).get_shape())

    def _slice(self, name: str) -> Any:
        return self.open[self.where[name]].get_slice(name)

    def equal(self, name: str, other: str) -> bool:
        """Whether two tensors are the same, number by number; both are read, a piece at a time."""
        if self.shape(name) != self.shape(other):
            return False
        one, two, rows = self._slice(name), self._slice(other), self.shape(name)[0]
        pieces = (slice(i, i + 1024) for i in range(0, rows, 1024))
        return all(torch.equal(one[piece].double(), two[piece].double()) for piece in pieces)

    def __getitem__(self, name: str) -> Tensor:
        kind = self._slice(name).get_dtype()
        if kind not in DTYPES:
            raise ValueError(
                f"{name} is {kind}; only {', '.join(DTYPES)} are opened, and quantised files are not"
            )
        if not self.read:
            return torch.empty(self.shape(name), dtype=DTYPES[kind], device="meta")
        return self.open[self.where[name]].get_tensor(name)


def _collected(
    model: Model, files: _Files, family: Family, dtype: torch.dtype | None
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Our tensors from theirs, of that dtype or of the file's, and the names of those of other read-outs."""
    if why := causes.of_peft(files.where):
        raise ValueError(why)
    short = {_short(name, family.prefix): name for name in files.where}
    taken, tensors = set(), {}
    for name, wanted in model.state_dict().items():
        made = theirs(name, family.names)
        if made.name not in short:
            where = ONE if len(files.open) == 1 else f"the {len(files.open)} shards"
            asked = model.config.get("architectures") or []
            raise ValueError(
                f"{made.name} is missing in {where}: config.json asks for it, shape {tuple(wanted.shape)}"
                f"{causes.missing(made.name, files.where, family.prefix, asked)}"
            )
        given = files[short[made.name]]
        mine = given if made.rows is None else given[made.rows(len(wanted))]
        x = made.how(mine).to(dtype or given.dtype)
        if x.shape != wanted.shape:
            raise ValueError(
                f"{short[made.name]} has shape {files.shape(short[made.name])}, and gives"
                f" {tuple(x.shape)} for {name}, where config.json asks for {tuple(wanted.shape)}"
            )
        taken.add(made.name)
        tensors[name] = x
    left = []
    for name in sorted(short.keys() - taken):
        numbered = re.sub(r"\.\d+\.", ".*.", name)
        if numbered in family.constants:
            continue
        if name in family.copies and family.copies[name] in short:
            other = family.copies[name]
            if not files.equal(short[name], short[other]):
                untie = "; if the file is right, config.json should say tie_word_embeddings: false"
                raise ValueError(
                    f"{name} should be the same as {other} (tie_word_embeddings), and is not"
                    f"{untie if name.endswith('.weight') else ''}"
                )
        elif name.startswith(family.left):
            left.append(short[name])
        else:
            own = (theirs(ours, family.names).name for ours in family.names if ours.startswith("read_out."))
            raise ValueError(
                f"{short[name]} has no place in a {model.options.family} with this config.json"
                f"{causes.without_place(name, tuple(own))}; the tensor would be lost"
            )
    return tensors, tuple(left)


def _short(name: str, prefix: str) -> str:
    """A name without its prefix; the oldest files call a norm's weight and bias gamma and beta."""
    for old, new in (("gamma", "weight"), ("beta", "bias")):
        name = re.sub(rf"LayerNorm\.{old}$", f"LayerNorm.{new}", name)
    return name.removeprefix(prefix)


def _tokenizer(folder: Path) -> Any:
    """A tokenizer, or the sentence that says why there is none."""
    if not (folder / "tokenizer.json").exists():
        return f"{folder} has no tokenizer.json: give the model numbers of tokens, torch.tensor([[...]])"
    if why := causes.in_place_of(folder / "tokenizer.json"):
        return f"{why}; numbers of tokens work without"
    try:
        plain = characters.read(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError):
        plain = None  # the package says what is wrong with it
    if plain is not None:
        return plain
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return "texts need the package tokenizers (pip install tokenizers); numbers of tokens work without"
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()  # some files fill every text up to 128 tokens
        tokenizer.no_truncation()
        return tokenizer
    except Exception as error:  # the package raises a plain Exception
        return f"tokenizer.json of {folder} cannot be read ({error}); numbers of tokens work without"
