"""Pages as their makers publish them: what changes nothing is known, what repeats another field must agree,
and all else is refused, all of it at once."""

import json

import pytest

from lesson_lib import cli
from lesson_lib.models.pretrained import new_model, open_model, options, save_model
from lesson_lib.models.pretrained.fields import UnknownFields
from tests.test_models_pretrained import CONFIGS

SAVED = {"bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.02, "torch_dtype": "bfloat16",
         "transformers_version": "4.41.0", "use_cache": True, "attention_dropout": 0.0}  # fmt: skip
STARCODER2 = SAVED | {
    "architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_size": 3072,
    "intermediate_size": 12288, "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
    "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 16384, "norm_epsilon": 1e-05,
    "rope_theta": 999999.4420358813, "sliding_window": 4096, "use_bias": True, "vocab_size": 49152,
    "residual_dropout": 0.1, "embedding_dropout": 0.1,
}  # fmt: skip
GEMMA2 = SAVED | {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 3584, "head_dim": 256,
    "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-06,
    "max_position_embeddings": 8192, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000,
    "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
    "attention_bias": False, "cache_implementation": "hybrid", "pad_token_id": 0,
}  # fmt: skip
LLAMA = SAVED | {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576, "hidden_act": "silu",
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 100000,
    "tie_word_embeddings": True, "vocab_size": 49152, "attention_bias": False, "mlp_bias": False,
    "pretraining_tp": 1,
}  # fmt: skip
GPT2 = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
    "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "bos_token_id": 50256, "eos_token_id": 50256,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 1024, "n_embd": 768, "n_head": 12,
    "n_layer": 12, "n_positions": 1024, "summary_activation": None, "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 50257,
}  # fmt: skip
BERT = {
    "architectures": ["BertForMaskedLM"], "model_type": "bert", "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "type_vocab_size": 2,
    "vocab_size": 105879,
}  # fmt: skip
GPT_OSS = {k: v for k, v in LLAMA.items() if k not in ("mlp_bias", "pretraining_tp")} | {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64,
    "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
    "attention_bias": True, "num_local_experts": 32, "num_experts_per_tok": 4, "initial_context_length": 4096,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "sliding_window": 128, "rope_theta": 150000,
    "output_router_logits": False, "router_aux_loss_coef": 0.9, "swiglu_limit": 7.0,
    "rope_scaling": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
        "rope_type": "yarn", "truncate": False,
    },
}  # fmt: skip
QWEN2 = {k: v for k, v in LLAMA.items() if k not in ("attention_bias", "mlp_bias", "pretraining_tp")} | {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "max_window_layers": 24,
    "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "use_sliding_window": False,
    "vocab_size": 151936,
}  # fmt: skip
SMOLLM3 = LLAMA | {
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_size": 2048,
    "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
    "layer_types": ["full_attention"] * 36, "no_rope_layers": [1, 1, 1, 0] * 9, "no_rope_layer_interval": 4,
    "rope_theta": 5000000.0, "sliding_window": None, "use_sliding_window": False, "vocab_size": 128256,
}  # fmt: skip
PHI4 = {k: v for k, v in LLAMA.items() if k not in ("mlp_bias", "pretraining_tp")} | {
    "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 5120, "rope_theta": 250000,
    "intermediate_size": 17920, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10,
    "sliding_window": None, "tie_word_embeddings": False, "vocab_size": 100352,
}  # fmt: skip
OLMO3 = {k: v for k, v in LLAMA.items() if k not in ("mlp_bias", "pretraining_tp")} | {
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "hidden_size": 4096, "rope_theta": 500000,
    "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8, "sliding_window": 4096,
    "tie_word_embeddings": False, "vocab_size": 100278,
    "rope_scaling": {
        "attention_factor": 1.2079441541679836, "beta_fast": 32, "beta_slow": 1, "factor": 8.0,
        "original_max_position_embeddings": 8192, "rope_type": "yarn",
    },
}  # fmt: skip
# what makers' pages say besides: (the page, the fields that change nothing)
PAGES = {
    "starcoder2-7b": (STARCODER2, {
        "activation_function": "gelu_pytorch_tanh", "attention_softmax_in_fp32": True,
        "layer_norm_epsilon": 1e-05, "mlp_type": "default", "norm_type": "layer_norm",
        "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True,
    }),
    "gemma-2-9b": (GEMMA2, {"sliding_window_size": 4096}),
    "SmolLM2-Instruct": (LLAMA, {
        "is_llama_config": True, "rope_interleaved": False,
        "transformers.js_config": {"dtype": "q4", "kv_cache_dtype": {"fp16": "float16"}},
    }),
    "a Llama fine-tuned": (LLAMA, {
        "unsloth_fixed": True, "unsloth_version": "2025.1", "tokenizer_padding_side": "right",
        "tokenizer_model_max_length": 2048, "_flash_attn_2_enabled": True, "sliding_window": None,
        "do_sample": True, "temperature": 0.6, "top_p": 0.9, "max_length": 4096,
    }),
    "Qwen2.5-0.5B": (QWEN2, {"use_mrope": False}),
    "SmolLM3-3B": (SMOLLM3, {"max_window_layers": 28, "pad_token_id": 128004}),
    "phi-4": (PHI4, {
        "embd_pdrop": 0.0, "resid_pdrop": 0.0, "original_max_position_embeddings": 16384,
    }),
    "Olmo-3-7B": (OLMO3, {"pad_token_id": 100277}),
    "gpt-oss in bfloat16": (GPT_OSS, {"experts_per_token": 4, "quantization_config": None}),
    "distilgpt2": (GPT2, {"_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}),
    "a GPT-2 trained on short texts": (GPT2, {"n_ctx": 128, "scale_attn_weights": True}),
    "legal-bert": (BERT, {"eos_token_ids": 0, "output_past": True, "num_labels": 2}),
    "bert-base-multilingual": (BERT, {
        "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
    }),
}  # fmt: skip
# what transformers 4 wrote of every configuration that was saved whole
OF_FOUR = {
    "return_dict": True, "output_hidden_states": False, "output_attentions": False, "torchscript": False,
    "use_bfloat16": False, "tf_legacy_loss": False, "pruned_heads": {}, "tie_word_embeddings": True,
    "chunk_size_feed_forward": 0, "is_encoder_decoder": False, "is_decoder": False,
    "cross_attention_hidden_size": None, "add_cross_attention": False, "tie_encoder_decoder": False,
    "max_length": 20, "min_length": 0, "do_sample": False, "early_stopping": False, "num_beams": 1,
    "num_beam_groups": 1, "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
    "typical_p": 1.0, "repetition_penalty": 1.0, "length_penalty": 1.0, "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0, "bad_words_ids": None, "num_return_sequences": 1,
    "output_scores": False, "return_dict_in_generate": False, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "remove_invalid_values": False, "exponential_decay_length_penalty": None,
    "suppress_tokens": None, "begin_suppress_tokens": None, "finetuning_task": None, "tokenizer_class": None,
    "prefix": None, "bos_token_id": None, "pad_token_id": None, "eos_token_id": None, "sep_token_id": None,
    "decoder_start_token_id": None, "task_specific_params": None, "problem_type": None, "_name_or_path": "",
    "torch_dtype": None, "xla_device": None,
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_makers_page_opens(name):
    page, more = PAGES[name]
    assert options(page | more) == options(page)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_page_saved_whole_opens(name):
    page = CONFIGS[name] | {"tie_word_embeddings": True}
    assert options(page | OF_FOUR) == options(page)


@pytest.mark.parametrize("name", PAGES)
def test_their_library_reads_and_writes_the_same(name):
    """Each page as it stands, and as their library saves it today."""
    transformers = pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
    page = PAGES[name][0] | PAGES[name][1]
    saved = transformers.AutoConfig.for_model(**page).to_dict()
    assert options(saved | {"architectures": page["architectures"]}) == options(page)


# a harmless field with another value, a field that contradicts another, a field that nobody knows
REFUSED = {
    "gated": ("starcoder2", {"mlp_type": "gated"}, "mlp_type is 'gated'; .*only with 'default'"),
    "another norm": ("starcoder2", {"norm_type": "rms_norm"}, "norm_type is 'rms_norm'; .*'layer_norm'"),
    "another eps": ("starcoder2", {"layer_norm_epsilon": 1e-6},
     "layer_norm_epsilon is 1e-06, and norm_epsilon, which says the same, is 1e-05; mend"),
    "another activation": ("starcoder2", {"activation_function": "relu"},
     "activation_function is 'relu', and hidden_act, .* is 'gelu_pytorch_tanh'"),
    "a window that is not used": ("llama", {"sliding_window": 5}, "sliding_window is 5; .*only with None"),
    "neighbouring columns": ("llama", {"rope_interleaved": True}, "rope_interleaved is True"),
    "other sizes": ("gpt2", {"hidden_size": 32}, "hidden_size is 32, and n_embd, .* is 16"),
    "more experts for a token": ("gpt_oss", {"experts_per_token": 4},
     "experts_per_token is 4, and num_experts_per_tok, which says the same, is 2"),
    "two bases": ("llama",
     {"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}, "rope_scaling": None},
     r"rope_theta is 500\.0, and in rope_parameters it is 7\.0; mend"),
    "two scalings": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
     "rope_type is 'llama3', and in rope_parameters it is 'default'; mend"),
    "two bases of windows": ("gemma3_text",
     {"rope_parameters": {"sliding_attention": {"rope_theta": 7.0}, "full_attention": {}}},
     r"rope_local_base_freq is 100, and in rope_parameters it is 7\.0; mend"),
    "biases of which one agrees": ("llama", {"mlp_bias": True, "use_bias": True},
     "use_bias is True, and attention_bias, which says the same, is False"),
    # fair refusals, which stay

    "code of its own": ("llama", {"auto_map": {"AutoModel": "m.M"}}, "the field 'auto_map' .*ignore"),
    "quantised": ("gpt_oss", {"quantization_config": {"quant_method": "mxfp4"}}, "weights are quantised"),
    "a part of the columns": ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
    "factors by length": (
        "phi3", {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}, "rope_type is 'longrope'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_meant_here_is_refused_by_name_and_value(name):
    family, more, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        options(CONFIGS[family] | more)


def test_names_of_one_activation_agree():
    page = CONFIGS["gpt2"]
    assert options(page | {"hidden_act": "gelu_pytorch_tanh"}) == options(page)
    with pytest.raises(ValueError, match=r"hidden_act is 'gelu', and activation_function, .* 'gelu_new'"):
        options(page | {"hidden_act": "gelu"})


def test_all_that_is_unknown_is_named_at_once():
    more = {"chunk": 8, "twist": "left", "qkv_bias": False, "long": list(range(1000))}
    with pytest.raises(UnknownFields) as error:
        options(CONFIGS["llama"] | more)
    said = str(error.value)
    for part in ("'chunk' (8)", "'twist' ('left')", "'long' ([0, 1, ", "qkv_bias is False",
                 "ignore=['chunk', 'twist', 'long']"):  # fmt: skip
        assert part in said
    assert len(said) < 500 and error.value.names == ["chunk", "twist", "long"]
    with pytest.raises(ValueError, match="qkv_bias is False") as other:
        options(CONFIGS["llama"] | more, ignore=("chunk", "twist", "long"))
    assert "'chunk'" not in str(other.value)
    assert options(CONFIGS["llama"] | more, ignore=tuple(more)) == options(CONFIGS["llama"])


def test_the_command_line_says_its_own_way_out(tmp_path, capsys):
    save_model(new_model(CONFIGS["llama"]), tmp_path)
    page = CONFIGS["llama"] | {"chunk": 8, "a.twist": 1}
    (tmp_path / "config.json").write_text(json.dumps(page))
    with pytest.raises(ValueError, match=r"open_model\(folder, ignore=\['chunk', 'a.twist'\]\)"):
        open_model(tmp_path)
    assert cli.main(["model", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "'chunk' (8) and 'a.twist' (1)" in said and "open_model" not in said
    way_out = said[said.index("--ignore") :].split()[:3]
    assert way_out == ["--ignore", "chunk", "a.twist"]
    assert cli.main(["model", str(tmp_path), *way_out]) == 0
