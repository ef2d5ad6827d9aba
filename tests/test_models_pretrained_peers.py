"""Every family that we open gives what its own library gives: outputs of attention, weights, logits, with a
cache and without."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from lesson_lib import cli, scalings
from lesson_lib.data import topics
from lesson_lib.heads import Cache
from lesson_lib.masks import padding
from lesson_lib.models.gpt import GPT
from lesson_lib.models.pretrained import config as configs
from lesson_lib.models.pretrained import files, from_gpt, generate, names, open_model, options, save_model
from tests import peer_models, peers
from tests.peers import NOISE, PIECES, N

transformers = pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
pytestmark = pytest.mark.on_cpu


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "cpu")


@pytest.mark.parametrize("name", peers.FOLDERS)
def test_ours_is_theirs(name, tmp_path, capsys):
    place = peers.folder(name, tmp_path)
    assert cli.main(["model", str(place)]) == 0 and " layers, " in capsys.readouterr().out
    found = peers.compared(open_model(place), name)
    assert not peers.beyond_noise(found)
    assert ("cached" in found) is (name not in ("bert", "bert, both read-outs", "vit"))


def test_attention_is_far_from_uniform_in_the_models_that_are_compared():
    """With weights as they are usually drawn, no mistake would show."""
    for name in peers.FOLDERS:
        for table in peers.answers(name)[1]:
            seen = (table > 0).sum(-1)
            assert (table.max(-1).values * seen)[seen > 3].mean() > 1.7, name


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("gpt2", torch.float16),
        ("llama", torch.bfloat16),
        ("gemma2", torch.bfloat16),
        ("gpt_oss", torch.bfloat16),
    ],
)
def test_files_of_half_precision_are_computed_in_float32(name, dtype, tmp_path):
    """As precisely as from a file of float32: nothing is rounded on the way."""
    place = peers.folder(name, tmp_path, dtype)
    found = peers.compared(open_model(place), name, dtype)
    assert not peers.beyond_noise(found)
    lean = open_model(place, dtype=None).state_dict()
    assert {x.dtype for x in lean.values()} == {dtype}
    wide = open_model(place, dtype=torch.float64).state_dict()
    assert all(torch.equal(x.to(dtype), lean[ours]) for ours, x in wide.items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_what_is_added_to_1_is_not_rounded(dtype):
    """0.0039 was lost of a weight of 0.2 in bfloat16."""
    w = 0.2 * torch.randn(1000).to(dtype)
    assert torch.equal(names._and_one(w).double(), 1 + w.double())


def test_shards(tmp_path):
    place = peers.folder("qwen3, windows", tmp_path, max_shard_size="20KB")
    assert len(list(place.glob("*.safetensors"))) > 3
    found = peers.compared(open_model(place), "qwen3, windows")
    assert not peers.beyond_noise(found)


def test_base_models_without_a_read_out(tmp_path):
    """BERT's and ViT's states; what else is in the file is named."""
    for name, kind in (("bert", "BertModel"), ("vit", "ViTModel")):
        whole = peers.reference(name)
        model_class = getattr(transformers, kind)
        theirs = peers.redrawn(model_class(model_class.config_class(**peers.FOLDERS[name][1]))).eval()
        theirs.save_pretrained(tmp_path / name)
        ours, x = open_model(tmp_path / name), peers.inputs(name)
        with torch.no_grad():
            states, read = theirs(x).last_hidden_state, ours(x)
        assert read.logits is None and whole is not theirs
        assert peers.apart(read.states, states, float(states.abs().max())) < NOISE
        assert ours.left == ("pooler.dense.bias", "pooler.dense.weight")


def test_padding_and_two_sentences(tmp_path):
    theirs, ours = peers.reference("bert"), open_model(peers.folder("bert", tmp_path))
    x, lengths = peers.inputs("bert"), torch.tensor([N, 9])
    kinds = (torch.arange(N) > 5).long().expand(2, N)
    mask = padding(lengths, N)
    with torch.no_grad():
        expected = theirs(x, attention_mask=mask[:, 0].long(), token_type_ids=kinds).logits
        got = ours(x, mask=mask, kinds=kinds).logits
    for row, n in enumerate(lengths):
        assert peers.apart(got[row, :n], expected[row, :n], float(expected.abs().max())) < NOISE


def test_generation_is_theirs(tmp_path):
    for name in ("gpt2", "mistral", "gemma3", "gpt_oss"):
        ours, start = open_model(peers.folder(name, tmp_path)), peers.inputs(name, n=5, batch=1)
        made = peers.reference(name).generate(start, max_new_tokens=20, do_sample=False, pad_token_id=0)
        assert generate(ours, start[0], 20).tolist() == made[0, 5:].tolist()


@pytest.mark.parametrize("kind", peers.LONGER)
def test_scalings_are_theirs(kind):
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    given = transformers.LlamaConfig(**peers.LLAMA | {"head_dim": 64} | peers.longer(kind))
    theirs, stretch = ROPE_INIT_FUNCTIONS[kind](given, "cpu")
    turn = configs.turn(configs.Fields(given.to_dict(), "llama"), 64)
    assert_close(torch.tensor(turn.frequencies), theirs, rtol=1e-6, atol=0)
    assert turn.stretch == pytest.approx(stretch)


def test_a_quotient_of_stretches_is_theirs():
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    positions = peers.longer("yarn")["rope_parameters"] | {"mscale": 2.0, "mscale_all_dim": 0.5}
    given = transformers.LlamaConfig(**peers.LLAMA | {"rope_parameters": positions})
    turn = configs.turn(configs.Fields(given.to_dict(), "llama"), 12)
    assert turn.stretch == pytest.approx(ROPE_INIT_FUNCTIONS["yarn"](given, "cpu")[1]) != 1
    assert turn.stretch != pytest.approx(scalings.yarn_stretch(4.0))


def test_ntk_is_theirs():
    """Theirs is dynamic: the base grows with the length. At four times the context it is factor 4."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    given = transformers.LlamaConfig(
        **peers.LLAMA | {"rope_parameters": {"rope_type": "dynamic", "factor": 1.0, "rope_theta": 1e4}}
    )
    theirs, _ = ROPE_INIT_FUNCTIONS["dynamic"](given, "cpu", seq_len=4 * given.max_position_embeddings)
    assert_close(scalings.ntk(12, 4.0).float(), theirs, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", sorted({kind for kind, _ in peers.FOLDERS.values()}))
def test_every_default_configuration_is_understood(name):
    """Every field that their classes write, also those that our folders leave as they are."""
    made = getattr(transformers, name).config_class()
    assert options(made.to_dict() | {"architectures": [name]}).layers


# --- our GPT, published ---


@pytest.mark.parametrize("n_key_heads", [None, 2])
def test_our_gpt_opens_in_their_library(tmp_path, n_key_heads):
    gpt = GPT(topics.CHARACTERS, n_layers=2, d_model=48, n_heads=4, n_key_heads=n_key_heads, context=32)
    peers.redrawn(gpt).eval()
    ours = from_gpt(gpt)
    save_model(ours, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    again = open_model(tmp_path)
    x = gpt.numbers("A list holds values in order.")[None]
    with torch.no_grad():
        expected = gpt(x)
        top = float(expected.abs().max())
        for model in (ours, theirs, again):
            assert peers.apart(model(x).logits, expected, top) < NOISE


# --- three more, which have no opener ---


def three(kind, tmp_path, **fields):
    peers.quiet()
    model_class = getattr(transformers, kind)
    given = model_class.config_class(**fields)
    given._attn_implementation = "eager"
    theirs = peers.redrawn(model_class(given)).eval()
    theirs.save_pretrained(tmp_path)
    from safetensors.torch import load_file

    return theirs, load_file(tmp_path / "model.safetensors"), files.read_config(tmp_path)


DEEPSEEK = {
    "vocab_size": peers.N_TOKENS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16,
    "qk_nope_head_dim": 10, "qk_rope_head_dim": 8, "v_head_dim": 12, "first_k_dense_replace": 2,
    "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip


@torch.no_grad()
def test_deepseek(tmp_path):
    """Expanded and absorbed, at once and with a cache of 24 numbers per token and layer in the place of
    120."""
    theirs, tensors, given = three("DeepseekV3ForCausalLM", tmp_path, **DEEPSEEK)
    ours, x = peer_models.DeepSeek(tensors, given), peers.inputs("deepseek")
    told = theirs(x, output_attentions=True)
    top = float(told.logits.abs().max())
    for absorbed in (False, True):
        logits, tables = ours(x, absorbed=absorbed)
        assert peers.apart(logits, told.logits, top) < NOISE
        assert max(peers.apart(a, b, top) for a, b in zip(tables, told.attentions, strict=True)) < NOISE
        caches = [Cache(), Cache()]
        parts = [ours(part, caches, absorbed)[0] for part in x.split(PIECES, 1)]
        assert peers.apart(torch.cat(parts, 1), told.logits, top) < NOISE
        kept = {tensor.shape[-1] for tensor in (caches[0].key, caches[0].value)}
        assert kept == {16, 8} and caches[0].key.shape[1] == 1
    for layer in ours.layers:
        layer.rotate = partial(layer.rotate, pairing="half-split")
    assert peers.apart(ours(x)[0], told.logits, top) > 1000 * NOISE


@torch.no_grad()
def test_modernbert(tmp_path):
    theirs, tensors, given = three(
        "ModernBertForMaskedLM", tmp_path, vocab_size=peers.N_TOKENS, hidden_size=32, intermediate_size=40,
        num_hidden_layers=4, num_attention_heads=4, local_attention=8, pad_token_id=0, bos_token_id=None,
        eos_token_id=None, cls_token_id=None, sep_token_id=None,
    )  # fmt: skip
    ours, x = peer_models.ModernBert(tensors, given), peers.inputs("modernbert").clamp(min=1)
    told = theirs(x, output_attentions=True)
    logits, tables = ours(x)
    top = float(told.logits.abs().max())
    assert peers.apart(logits, told.logits, top) < NOISE
    assert max(peers.apart(a, b, top) for a, b in zip(tables, told.attentions, strict=True)) < NOISE
    for fault in ({"radius": 3}, {"radius": 8}, {"swapped": True}):
        wrong = peer_models.ModernBert(tensors, given)
        vars(wrong).update(fault)
        assert peers.apart(wrong(x)[0], told.logits, top) > 1000 * NOISE, fault


@pytest.mark.parametrize("gated", [False, True])
@torch.no_grad()
def test_t5(tmp_path, gated):
    theirs, tensors, given = three(
        "T5ForConditionalGeneration", tmp_path, vocab_size=peers.N_TOKENS, d_model=32, d_kv=12, d_ff=48,
        num_layers=2, num_heads=4, relative_attention_num_buckets=12, relative_attention_max_distance=20,
        feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated,
    )  # fmt: skip
    ours, source, target = (
        peer_models.T5(tensors, given),
        peers.inputs("t5"),
        peers.inputs("t5", n=17, seed=2),
    )
    told = theirs(source, decoder_input_ids=target, output_attentions=True)
    logits, tables = ours(source, target)
    top = float(told.logits.abs().max())
    assert peers.apart(logits, told.logits, top) < NOISE
    expected = [*told.encoder_attentions, *told.decoder_attentions]
    assert max(peers.apart(a, b, top) for a, b in zip(tables, expected, strict=True)) < NOISE
    assert (ours.logit_scale == 1.0) is gated  # the newer ones have a table of their own for the logits
    ours.logit_scale = 32**-0.5 if gated else 1.0
    assert peers.apart(ours(source, target)[0], told.logits, top) > 0.5
