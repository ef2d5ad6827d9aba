"""Folders of models: read strictly, described, continued with a cache; and every odd folder has its
sentence."""

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.testing import assert_close

from lesson_lib import cli
from lesson_lib.device import device, to_device
from lesson_lib.heads import Cache
from lesson_lib.models.gpt import GPT
from lesson_lib.models.pretrained import (
    Model,
    described,
    from_gpt,
    generate,
    kept,
    new_model,
    open_model,
    options,
    save_model,
)
from lesson_lib.models.pretrained.described import TITLES
from lesson_lib.models.pretrained.names import FAMILIES

N, N_TOKENS, WINDOW = 19, 41, 5
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": N_TOKENS, "hidden_size": 16,
    "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "max_position_embeddings": 64,
    "rope_theta": 500.0,
}  # fmt: skip
TWO_WAYS = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "hidden_act": "gelu", "layer_norm_eps": 1e-12,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 32,
}  # fmt: skip
# the fields that published files of these families have, in their older and newer forms; sizes are small
CONFIGS = {
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 16, "n_head": 4,
     "n_layer": 3, "n_positions": 64, "n_ctx": 64, "vocab_size": N_TOKENS, "activation_function": "gelu_new",
     "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
     "summary_type": "cls_index", "summary_use_proj": True, "summary_activation": None,
     "summary_proj_to_labels": True, "summary_first_dropout": 0.1, "initializer_range": 0.02,
     "bos_token_id": 40, "eos_token_id": 40, "task_specific_params": {"text-generation": {"max_length": 50}}},
    "bert": TWO_WAYS | {"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": N_TOKENS,
     "type_vocab_size": 2, "max_position_embeddings": 64, "position_embedding_type": "absolute",
     "gradient_checkpointing": False, "hidden_dropout_prob": 0.1, "pad_token_id": 0, "use_cache": True,
     "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02, "transformers_version": "4.6.0.dev0"},
    "vit": TWO_WAYS | {"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 12,
     "patch_size": 4, "num_channels": 3, "qkv_bias": True, "encoder_stride": 16,
     "id2label": {"0": "cat", "1": "dog"}, "label2id": {"cat": 0, "dog": 1}},
    "llama": LLAMA | {
        "attention_bias": False, "mlp_bias": False, "head_dim": 4, "pretraining_tp": 1,
        "torch_dtype": "bfloat16",
        "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
         "rope_type": "llama3", "original_max_position_embeddings": 16},
    },
    "mistral": LLAMA | {"model_type": "mistral", "sliding_window": WINDOW},
    "ministral3": LLAMA | {
        "model_type": "ministral3", "sliding_window": None, "rope_parameters": YARN | {
            "llama_4_scaling_beta": 0.1, "rope_theta": 500.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        },
    },
    "qwen2": LLAMA | {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": None},
    "smollm3": LLAMA | {"model_type": "smollm3", "no_rope_layer_interval": 2, "tie_word_embeddings": True},
    "granite": LLAMA | {"model_type": "granite", "embedding_multiplier": 12.0, "logits_scaling": 8.0,
     "residual_multiplier": 0.22, "attention_multiplier": 0.015},
    "phi3": LLAMA | {"model_type": "phi3", "original_max_position_embeddings": 64, "sliding_window": WINDOW},
    "olmo2": LLAMA | {"model_type": "olmo2"},
    "olmo3": LLAMA | {"model_type": "olmo3", "sliding_window": WINDOW},
    "qwen3": LLAMA | {"model_type": "qwen3", "head_dim": 8, "max_window_layers": 28, "sliding_window": None,
     "use_sliding_window": False, "rope_scaling": None, "tie_word_embeddings": True},
    "gemma2": LLAMA | {"model_type": "gemma2", "head_dim": 8, "hidden_activation": "gelu_pytorch_tanh",
     "sliding_window": WINDOW, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
     "query_pre_attn_scalar": 4, "cache_implementation": "hybrid", "tie_word_embeddings": True},
    "gemma3_text": LLAMA | {"model_type": "gemma3_text", "head_dim": 8,
     "hidden_activation": "gelu_pytorch_tanh", "sliding_window": WINDOW, "sliding_window_pattern": 3,
     "query_pre_attn_scalar": 8, "rope_local_base_freq": 100, "rope_theta": 10_000,
     "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "attn_logit_softcapping": None,
     "final_logit_softcapping": None, "tie_word_embeddings": True},
    "gpt_oss": LLAMA | {
        "model_type": "gpt_oss", "head_dim": 8, "sliding_window": WINDOW, "num_local_experts": 4,
        "num_experts_per_tok": 2, "experts_per_token": 2, "attention_bias": True, "rope_scaling": YARN,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "swiglu_limit": 7.0,
        "router_aux_loss_coef": 0.9, "output_router_logits": False, "initial_context_length": 32,
    },
    "starcoder2": {k: v for k, v in LLAMA.items() if k != "rms_norm_eps"} | {
        "model_type": "starcoder2", "norm_epsilon": 1e-5, "use_bias": True, "sliding_window": WINDOW,
        "residual_dropout": 0.1, "embedding_dropout": 0.1, "hidden_act": "gelu_pytorch_tanh",
    },
}  # fmt: skip
CAUSAL = [name for name in CONFIGS if name not in ("bert", "vit")]


def made(name, **fields):
    torch.manual_seed(1)
    model = new_model(CONFIGS[name] | fields).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def inputs(name, n=N):
    if name == "vit":
        return torch.randn(2, 3, 12, 12)
    return torch.randint(N_TOKENS, (2, n))


@pytest.fixture
def place(tmp_path):
    save_model(made("llama"), tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_every_tensor_has_a_name_in_the_file(name):
    """Ours and theirs fit, each once: what is split in ours stands whole there."""
    from lesson_lib.models.pretrained.names import theirs

    ours = made(name).state_dict()
    found = [theirs(each, FAMILIES[name].names) for each in ours]
    twice = {one.name for one in found if [other.name for other in found].count(one.name) > 1}
    assert all("c_attn" in each or "gate_up" in each or "qkv" in each for each in twice)
    used = {re.sub(r"^layers\.\d+\.", "layers.*.", each) for each in ours}
    read_out = {"read_out.table"} if options(CONFIGS[name]).tied else set()
    for key in FAMILIES[name].names.keys() - read_out:
        gated = "w_gate" in key and name == "starcoder2"  # a Llama's row that this family has not
        assert gated or any(each == key or each.startswith(f"{key}.") for each in used), key


@pytest.mark.parametrize("name", CAUSAL)
@torch.no_grad()
def test_with_a_cache_and_without(name):
    model, x, pieces = made(name), inputs(name), [7, 1, 11]
    whole = model(x, weights=True)
    assert len(whole.weights) == len(model.layers) and len(whole.stream) == len(model.layers) + 1
    caches = model.caches()
    parts = [model(part, caches=caches).logits for part in x.split(pieces, 1)]
    top = whole.logits.abs().max().item()
    assert_close(torch.cat(parts, 1), whole.logits, atol=2e-5 * max(1, top), rtol=1e-4)
    held = sum(cache.key.numel() + cache.value.numel() for cache in caches) // 2  # of two texts
    assert held == kept(model.options, N)
    whole_ones = [Cache() for _ in model.layers]  # that let nothing go: the mask alone makes the window
    parts = [model(part, caches=whole_ones).logits for part in x.split(pieces, 1)]
    assert_close(torch.cat(parts, 1), whole.logits, atol=2e-5 * max(1, top), rtol=1e-4)
    lean = model(x)
    assert lean.weights is None and lean.stream is None
    assert_close(lean.logits, whole.logits, atol=2e-5 * max(1, top), rtol=1e-4)


@torch.no_grad()
def test_a_mask_of_ones_own_goes_through_windows_and_caches():
    """Token 9 of the second text is hidden from all others, which is as if it were another token."""
    model, x = made("gemma2"), inputs("gemma2")
    mask = torch.ones(2, 1, N, dtype=torch.bool)
    mask[1, :, 9] = False
    whole = model(x, mask=mask).logits
    other = x.clone()
    other[1, 9] = (other[1, 9] + 1) % N_TOKENS
    rest = [i for i in range(N) if i != 9]
    assert_close(model(other, mask=mask).logits[:, rest], whole[:, rest])
    caches, parts, seen = model.caches(), [], 0
    for part in x.split([7, 1, 11], 1):
        seen += part.shape[1]
        parts.append(model(part, caches=caches, mask=mask[..., :seen]).logits)
    assert_close(torch.cat(parts, 1), whole, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_windows_are_where_the_family_has_them():
    for name, local in (
        ("mistral", [True, True, True]),
        ("gemma2", [True, False, True]),
        ("gemma3_text", [True, True, False]),
        ("gpt_oss", [True, False, True]),
        ("qwen3", [False] * 3),
    ):
        tables = made(name)(inputs(name), weights=True).weights
        seen = [int((table[0, 0, -1] > 0).sum()) for table in tables]
        assert seen == [WINDOW if near else N for near in local], name


def test_later_layers_of_qwen3_and_given_types_have_windows():
    fields = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}
    found = options(CONFIGS["qwen3"] | fields)
    assert [kind.window for kind in found.layers] == [None, None, WINDOW]
    types = {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    assert [kind.window for kind in options(CONFIGS["gemma2"] | types).layers] == [None, WINDOW, None]


def test_older_and_newer_fields_of_positions_say_the_same():
    new = {k: v for k, v in CONFIGS["gemma3_text"].items() if not k.startswith("rope_")} | {
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10_000.0},
        }
    }
    assert options(new) == options(CONFIGS["gemma3_text"])
    first, _, last = options(new).layers
    assert first.turn.told == "rotary, base 100" and last.turn.told == "rotary, base 10,000, linear × 8"
    old = LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.0}}
    newer = {k: v for k, v in LLAMA.items() if k != "rope_theta"} | {
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
    }
    assert options(old) == options(newer) != options(LLAMA)
    silent = {k: v for k, v in CONFIGS["gpt_oss"].items() if k != "rope_scaling"}
    with pytest.raises(ValueError, match="no field 'rope_parameters', which a gpt_oss needs"):
        options(silent)


# --- files ---


def test_saved_and_opened_again(tmp_path):
    for name in ("bert", "vit", "llama", "mistral", "qwen3", "starcoder2"):
        model, x = made(name), inputs(name)
        save_model(model, tmp_path / name)
        again = open_model(tmp_path / name)
        with torch.no_grad():
            assert torch.equal(again(x).logits, model(x).logits)
        assert again.config == model.config == json.loads((tmp_path / name / "config.json").read_text())
        assert not again.training and next(again.parameters()).device.type == device().type


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "gpt_oss"])
def test_what_lies_otherwise_in_the_file_is_not_saved(name, tmp_path):
    with pytest.raises(ValueError, match="cannot be saved here: its file holds"):
        save_model(made(name), tmp_path)
    with pytest.raises(ValueError, match="has no config"):
        save_model(Model(options(LLAMA)), tmp_path)


def shards(place):
    """The same folder with its tensors in two files and an index."""
    tensors = load_file(place / "model.safetensors")
    (place / "model.safetensors").unlink()
    where = {}
    for i in range(2):
        part = dict(list(tensors.items())[i::2])
        save_file(part, place / f"model-{i}.safetensors")
        where |= dict.fromkeys(part, f"model-{i}.safetensors")
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return place


def test_shards(place):
    x, expected = inputs("llama"), open_model(place)
    with torch.no_grad():
        assert torch.equal(open_model(shards(place))(x).logits, expected(x).logits)


def edited(place, change):
    tensors = load_file(place / "model.safetensors")
    change(tensors)
    save_file({name: x.cpu() for name, x in tensors.items()}, place / "model.safetensors")


def fields(place, **new):
    path = place / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | new))


def cut(path, share=0.5):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def without(place, name):
    path = place / "config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != name}))


K_PROJ = "model.layers.1.self_attn.k_proj.weight"
ODD = {
    "no folder": (lambda p: shutil.rmtree(p), FileNotFoundError, "there is no folder"),
    "no config": (lambda p: (p / "config.json").unlink(), FileNotFoundError, "has no config.json"),
    "no JSON": (lambda p: (p / "config.json").write_text("{'a': 1}"), ValueError,
     "is no JSON .* fetch it again"),
    "no weights": (lambda p: (p / "model.safetensors").unlink(), FileNotFoundError,
     "has neither model.safetensors nor"),
    "a pickle": (lambda p: (p / "model.safetensors").rename(p / "pytorch_model.bin"), FileNotFoundError,
     "pytorch_model.bin is a pickle, which can run any code"),
    "cut off": (lambda p: cut(p / "model.safetensors"), ValueError, "is cut off or no safetensors file"),
    "a shard missing": (lambda p: (shards(p) / "model-1.safetensors").unlink(), FileNotFoundError,
     "the shard model-1.safetensors is missing"),
    "a tensor missing": (lambda p: edited(p, lambda t: t.pop(K_PROJ)), ValueError,
     r"layers.1.self_attn.k_proj.weight is missing in model.safetensors: .* shape \(8, 16\)"),
    "a tensor too many": (
        lambda p: edited(p, lambda t: t.update({"model.layers.1.extra.weight": torch.zeros(2)})),
        ValueError,
        "model.layers.1.extra.weight has no place in a llama .* would be lost",
    ),
    "a wrong size": (lambda p: edited(p, lambda t: t.update({K_PROJ: torch.zeros(8, 12)})), ValueError,
     r"k_proj.weight has shape \(8, 12\), .* where config.json asks for \(8, 16\)"),
    "whole numbers": (lambda p: edited(p, lambda t: t.update({K_PROJ: torch.zeros(8, 16).to(torch.int8)})),
     ValueError, "k_proj.weight is I8; .* quantised files are not"),
    "an unknown family": (lambda p: fields(p, model_type="mamba"), ValueError,
     "model_type is 'mamba'; families that can be opened: gpt2, bert"),
    "linear attention": (lambda p: fields(p, model_type="qwen3_5_text", layer_types=["linear_attention"]),
     ValueError, "a gated delta rule behind a short convolution.*--card FILE.svg draws its page"),
    "a field missing": (lambda p: without(p, "hidden_size"), ValueError,
     "no field 'hidden_size', which a llama needs"),
    "an unknown field": (lambda p: fields(p, attention_chunk_size=8), ValueError,
     r"the field 'attention_chunk_size' \(8\), which is not known here for a llama"),
    "another scaling": (lambda p: fields(p, rope_scaling={"rope_type": "longrope", "factor": 4.0}),
     ValueError, "rope_type is 'longrope'; supported are default, linear, yarn, llama3"),
    "an unknown activation": (lambda p: fields(p, hidden_act="xielu"), ValueError,
     "hidden_act is 'xielu'; supported are"),
    "tied, and yet two tables": (lambda p: fields(p, tie_word_embeddings=True), ValueError,
     r"lm_head.weight should be the same as embed_tokens.weight \(tie_word_embeddings\), and is not"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_folder_has_its_sentence(place, odd, capsys):
    spoil, kind, said = ODD[odd]
    spoil(place)
    with pytest.raises(kind, match=said):
        open_model(place)
    assert cli.main(["model", str(place)]) == 1
    assert re.search(said, capsys.readouterr().err)


ODD_FIELDS = {
    "layer_types of another kind": (
        "gemma2",
        {"layer_types": ["full_attention", "linear_attention", "full_attention"]},
        "layer_types has 'linear_attention'",
    ),
    "a decoder BERT": ("bert", {"is_decoder": True}, "is_decoder is True; a BERT that looks back only"),
    "no biases": ("vit", {"qkv_bias": False}, "qkv_bias is False"),
    "patches that do not fit": ("vit", {"patch_size": 5}, "image_size is 12, no multiple of patch_size = 5"),
}


@pytest.mark.parametrize("odd", ODD_FIELDS)
def test_an_odd_field_has_its_sentence(odd):
    name, given, said = ODD_FIELDS[odd]
    with pytest.raises(ValueError, match=said):
        options(CONFIGS[name] | given)


def test_a_field_can_be_ignored_by_name(place, capsys):
    fields(place, attention_chunk_size=8)
    assert open_model(place, ignore=["attention_chunk_size"]).options == options(CONFIGS["llama"])
    assert cli.main(["model", str(place), "--ignore", "attention_chunk_size"]) == 0


def test_copies_and_constants_are_no_tensors_of_their_own(tmp_path):
    save_model(made("bert"), tmp_path)

    def change(tensors):
        for name in [name for name in tensors if "LayerNorm" in name]:  # as the oldest files call them
            tensors[name.replace("weight", "gamma").replace("bias", "beta")] = tensors.pop(name)
        table = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = table.clone()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
        tensors["bert.embeddings.position_ids"] = torch.arange(64)[None]
        tensors["bert.pooler.dense.weight"] = torch.zeros(16, 16)

    edited(tmp_path, change)
    model, x = open_model(tmp_path), inputs("bert")
    with torch.no_grad():
        assert torch.equal(model(x).logits, made("bert")(x).logits)
    assert model.left == ("bert.pooler.dense.weight",)
    assert "Not opened, since it is another read-out: bert.pooler.dense.weight." in described(model)


# --- using it ---


def test_generation_takes_the_likeliest():
    model, start = made("gemma2"), inputs("gemma2")[0, :4]
    found, text = generate(model, start, 9), start
    for _ in range(9):
        with torch.no_grad():
            text = torch.cat((text, model(text[None]).logits[0, -1:].argmax(-1)))
    assert found.tolist() == text[4:].tolist()
    assert generate(model, start, 3, choose=lambda logits: 7).tolist() == [7, 7, 7]


X = torch.zeros(1, 3, dtype=torch.long)


@pytest.mark.parametrize(
    "name, call, said",
    [
        ("llama", lambda m: m(X + 99), "tokens must lie between 0 and 40, got 99 ... 99"),
        ("llama", lambda m: m(X[0]), r"tokens must be whole numbers of shape \(b, n\)"),
        ("llama", lambda m: m.numbers("a text"), "came without a tokenizer"),
        ("gpt2", lambda m: m(X.expand(1, 3).repeat(1, 30)), "a table of 64 positions, and 90 are asked for"),
        ("bert", lambda m: m(X, caches=m.caches()), "bert looks both ways"),
        ("bert", lambda m: generate(m, X[0], 3), "makes no text from left to right"),
        ("vit", lambda m: m(torch.zeros(2, 1, 12, 12)), r"images must be a tensor of shape \(b, 3, 12, 12\)"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, name, call, said):
    with pytest.raises(ValueError, match=said):
        call(made(name))


def test_a_model_that_was_not_read_is_described_and_computes_nothing(place):
    model = open_model(place, read=False)
    assert described(model) == described(open_model(place))
    with pytest.raises(ValueError, match="opened with read=False"):
        model(X)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family_is_described(name):
    told = described(made(name), name="mine")
    assert told.startswith(f"mine: {TITLES[name]}, {len(made(name).layers)} layers, ")
    facts = {
        "gpt2": ["all before", "a learned table of 64", "After 64 tokens"],
        "bert": ["all tokens", "by the table of embeddings", "LayerNorm behind each sub-layer"],
        "vit": ["9 patches of 4 x 4", "2 classes"],
        "llama": ["rotary, base 500, llama3 × 32", "2 of keys and values", "2 heads of queries share one"],
        "mistral": ["0-2     the last 5", "windows of 5 tokens"],
        "ministral3": ["yarn × 8", "scores grow with the position of the query"],
        "qwen2": ["queries, keys and values have biases"],
        "smollm3": ["1       all before  none", "no positions in some layers"],
        "granite": ["multiplied by 0.22", "logits are multiplied by 0.125", "not divided by the root"],
        "phi3": ["0-2     the last 5"],
        "olmo2": ["RMSNorm after each sub-layer", "all columns of queries, and of keys, are normed together"],
        "olmo3": ["0-2     the last 5", "norms after each sub-layer, before the sum"],
        "qwen3": ["QK-norm", "a head is 8 wide, 4 of them are 32, and a token 16"],
        "gemma2": ["0, 2    the last 5", "scores are capped at ±50", "not divided by the root"],
        "gemma3_text": ["0-1     the last 5", "base 10,000, linear × 8", "embeddings are multiplied by 4"],
        "gpt_oss": ["each head has a sink", "4 experts, 2 for each token", "stretched by 1.208 (yarn)"],
        "starcoder2": ["LayerNorm before", "24 inside (gelu_pytorch_tanh)"],
    }[name]
    for fact in facts:
        assert fact in told, f"{fact} is not in\n{told}"
    assert all(len(line) < 140 for line in told.splitlines() if "Without" not in line)


def test_what_the_caches_keep():
    """Three layers of gemma2, two with a window of 5: 2 heads of 8 numbers, keys and values."""
    found = options(CONFIGS["gemma2"])
    assert kept(found, 1) == 3 * 32 and kept(found, 4) == 12 * 32
    assert kept(found, 1000) == (1000 + 4 + 4) * 32
    full = options(CONFIGS["gemma2"] | {"num_key_value_heads": 4, "layer_types": ["full_attention"] * 3})
    assert kept(full, 1000) == 6 * 32 * 1000
    told = described(Model(found))
    assert f"keep {kept(found, 1000):,} numbers" in told and "6 times as much" in told


def test_a_tokenizer(place, capsys):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not carried to a GPU machine")
    words = {word: i for i, word in enumerate("the cat sat on a mat ?".split())}
    model = tokenizers.models.WordLevel(words | {f"w{i}": i for i in range(7, N_TOKENS)}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=12)  # as some published files have them
    tokenizer.enable_truncation(2)
    tokenizer.save(str(place / "tokenizer.json"))
    opened = open_model(place)
    assert opened.numbers("the cat sat").tolist() == [0, 1, 2]
    assert opened.pieces(torch.tensor([1, 5])) == ["cat", "mat"]
    assert "Without texts" not in described(opened)
    assert cli.main(["model", str(place), "--text", "the cat", "--length", "3"]) == 0
    made = generate(opened, to_device(opened.numbers("the cat")), 3)
    assert f"the cat|{opened.text.decode(made.tolist())}" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["missing", "broken", "not installed"])
def test_without_a_tokenizer(place, kind, monkeypatch, capsys):
    said = {
        "missing": "has no tokenizer.json",
        "broken": "cannot be read",
        "not installed": "pip install tokenizers",
    }[kind]
    if kind != "missing":
        (place / "tokenizer.json").write_text("{}")
    if kind == "not installed":
        monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    elif kind == "broken":
        pytest.importorskip("tokenizers", reason="tokenizers is not carried to a GPU machine")
    model = open_model(place)
    with pytest.raises(ValueError, match=said):
        model.numbers("a text")
    assert model.pieces(torch.tensor([1, 5])) == ["1", "5"] and said in described(model)
    assert cli.main(["model", str(place), "--text", "a"]) == 1 and said in capsys.readouterr().err


@torch.no_grad()
def test_our_gpt_is_a_starcoder2():
    for n_key_heads in (None, 1):
        gpt = to_device(
            GPT("abcdef \n", n_layers=2, d_model=24, n_heads=3, n_key_heads=n_key_heads, context=16)
        )
        for parameter in gpt.parameters():
            nn.init.normal_(parameter, std=0.4)
        model, x = from_gpt(gpt.eval()), torch.randint(8, (2, 11))
        assert_close(model(x).logits, gpt(x), atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="positions='rotary'"):
        from_gpt(GPT("ab", d_model=24, positions="learned"))


def test_characters_need_no_package(place, monkeypatch):
    from lesson_lib.models.pretrained.characters import Characters

    signs = {sign: number for number, sign in enumerate("ab \n")}
    Characters(signs | {"<s>": 4}, 4).save(place / "tokenizer.json")
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    model = open_model(place)
    assert model.numbers("b a\n").tolist() == [4, 1, 2, 0, 3]
    assert model.pieces(torch.tensor([4, 1])) == ["<s>", "b"] and model.text.decode([4, 1, 0]) == "ba"
    with pytest.raises(ValueError, match="does not know 'c'; it knows 'ab"):
        model.numbers("abc")
    monkeypatch.undo()
    theirs = pytest.importorskip("tokenizers", reason="tokenizers is not carried to a GPU machine")
    package = theirs.Tokenizer.from_file(str(place / "tokenizer.json"))
    for text in ("b a\n", "", "abab"):
        assert package.encode(text).ids == model.numbers(text).tolist()
        assert package.decode(package.encode(text).ids) == text
    Characters(signs).save(place / "tokenizer.json")
    assert open_model(place).numbers("ab").tolist() == [0, 1]
