"""The fields of a config.json, and what is known of those that no family reads.

A field that a family does not read changes nothing whatever it says (`HARMLESS`), may have certain values
only (`ONLY`, `ONLY_OF` a family), repeats a field that is read and must agree with it (`SAME`), or is
refused: a field that is skipped in silence is how a model comes out wrong.
"""

from typing import Any

from lesson_lib.models.pretrained.model import ACTIVATIONS

HARMLESS = set(
    # what the model is called, who saved it, and how it is run
    "model_type architectures transformers_version torch_dtype dtype name _name_or_path _commit_hash language"
    " use_cache return_dict output_hidden_states output_attentions output_router_logits output_past"
    " torchscript use_bfloat16 tf_legacy_loss xla_device _attn_implementation _attn_implementation_autoset"
    " _flash_attn_2_enabled cache_implementation chunk_size_feed_forward pretraining_tp unsloth_fixed"
    " unsloth_version transformers.js_config"
    # tokens and tokenizers
    " bos_token_id eos_token_id eos_token_ids pad_token_id cls_token_id sep_token_id unk_token_id"
    " mask_token_id decoder_start_token_id forced_bos_token_id forced_eos_token_id predict_special_tokens"
    " prefix tokenizer_class model_max_length tokenizer_model_max_length tokenizer_padding_side"
    # training
    " initializer_range attention_dropout hidden_dropout_prob attention_probs_dropout_prob classifier_dropout"
    " resid_pdrop embd_pdrop attn_pdrop residual_dropout embedding_dropout gradient_checkpointing"
    " router_aux_loss_coef finetuning_task problem_type task_specific_params id2label label2id num_labels"
    " _num_labels"
    # the length of texts (n_ctx is that of training, and many a GPT-2 has more positions)
    " max_position_embeddings max_sequence_length n_ctx n_positions initial_context_length"
    # how a text is continued
    " max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature"
    " top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size"
    " encoder_no_repeat_ngram_size bad_words_ids num_return_sequences output_scores return_dict_in_generate"
    " remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens"
    # read-outs that are not opened
    " summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout"
    " encoder_stride pooler_output_size pooler_act pooler_type pooler_fc_size pooler_num_attention_heads"
    " pooler_num_fc_layers pooler_size_per_head".split()
)
# what may stand there only with these values
ONLY = {
    "is_encoder_decoder": (False, None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "cross_attention_hidden_size": (None,),
    "tie_encoder_decoder": (False, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "reorder_and_upcast_attn": (False,),
    "attention_softmax_in_fp32": (True,),
    "scale_attention_softmax_in_fp32": (True,),
    "position_embedding_type": ("absolute", None),
    "partial_rotary_factor": (1.0, 1, None),
    "rope_interleaved": (False, None),
    "sliding_window": (None,),
    "use_bidirectional_attention": (False, None),
    "qkv_bias": (True,),
}
ONLY_OF = {
    "gpt2": {"n_special": (0,)},
    "bert": {"directionality": ("bidi",)},
    "vit": {"tie_word_embeddings": (True, False)},
    "llama": {"is_llama_config": (True,)},
    "qwen2": {"use_mrope": (False,)},
    "gpt_oss": {"hidden_act": ("silu",)},
    "starcoder2": {"mlp_type": ("default",), "norm_type": ("layer_norm",)},
}
MEANING = {
    "quantization_config": "the weights are quantised; take a folder in bfloat16, float16 or float32",
    "is_decoder": "a BERT that looks back only is not supported",
    "qkv_bias": "a ViT without biases is not supported",
}
# names of one thing: of each group a family reads one
SAME = (
    {"hidden_size", "n_embd"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"},
    {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"},
    {"hidden_act", "activation_function", "hidden_activation"},
    {"use_bias", "attention_bias", "mlp_bias"},
    {"sliding_window", "sliding_window_size"},
    {"sliding_window_pattern", "_sliding_window_pattern"},
    {"num_local_experts", "num_experts"},
    {"num_experts_per_tok", "experts_per_token"},
)


class UnknownFields(ValueError):
    """Fields of a config.json, by their `names`, that are not known here. `said` is the sentence up to its
    repair, which is another one on the command line."""

    def __init__(self, said: str, names: list[str]) -> None:
        super().__init__(f"{said}, use open_model(folder, ignore={names!r})")
        self.said, self.names = said, names


class Fields:
    """A config.json, or a part of it, that remembers which of its fields were read, and as what. `reader`
    needs them."""

    def __init__(self, given: dict[str, Any], reader: str) -> None:
        self.given, self.reader, self.read = given, reader, {}

    def __call__(self, name: str, *default: Any) -> Any:
        """A field's value; `default` where it is missing. Raises ValueError where there is none."""
        if name not in self.given and not default:
            raise ValueError(f"config.json has no field {name!r}, which a {self.reader} needs")
        self.read[name] = self.given[name] if name in self.given else default[0]
        return self.read[name]

    def unread(self) -> dict[str, Any]:
        return {name: value for name, value in self.given.items() if name not in self.read}

    def size(self, name: str, *default: Any) -> int:
        """A field that must be a whole number of at least 1."""
        value = self(name, *default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"config.json: {name} must be a whole number >= 1, got {value!r}")
        return value

    def activation(self, name: str, *default: Any) -> str:
        """A field that must name a known activation."""
        value = self(name, *default)
        if value not in ACTIVATIONS:
            raise ValueError(f"config.json: {name} is {value!r}; supported are {', '.join(ACTIVATIONS)}")
        return value

    def rest(self, ignore: tuple[str, ...] = ()) -> None:
        """Raise ValueError for all fields that were not read and may change something: UnknownFields where
        there are some that are not known here."""
        only = ONLY | ONLY_OF.get(self.reader, {})
        wrong, unknown = [], {}
        for name, value in self.unread().items():
            if name in ignore:
                continue
            same = {
                other: x for other, x in self.read.items() if any({name, other} <= group for group in SAME)
            }
            if same:
                for other, x in same.items():
                    if not _agree(value, x):
                        wrong.append(contradiction(name, value, f"{other}, which says the same, is", x))
            elif name in only:
                if value not in only[name]:
                    why = MEANING.get(name, f"a {self.reader} is opened only with {only[name][0]!r}")
                    wrong.append(f"config.json: {name} is {shown(value)}; {why}")
            elif name not in HARMLESS:
                unknown[name] = value
        if unknown:
            which, they, do = ("which is", "it", "does") if len(unknown) == 1 else ("which are", "they", "do")
            told = (
                f"config.json has {named(unknown)}, {which} not known here for a {self.reader}: {they} may"
                f" change what the model computes. If you know that {they} {do} not"
            )
            raise UnknownFields("\n".join([*wrong, told]), list(unknown))
        if wrong:
            raise ValueError("\n".join(wrong))


def contradiction(name: str, value: Any, other: str, theirs: Any) -> str:
    """The sentence on two fields of which one must be wrong."""
    return f"config.json: {name} is {shown(value)}, and {other} {shown(theirs)}; mend the one that is wrong"


def named(fields: dict[str, Any]) -> str:
    """Fields and their values, for a sentence.

    >>> named({"chunk": 8, "twist": "left"})
    "the fields 'chunk' (8) and 'twist' ('left')"
    """
    told = [f"{name!r} ({shown(value)})" for name, value in fields.items()]
    start = "the field " if len(told) == 1 else f"the fields {', '.join(told[:-1])} and "
    return start + told[-1]


def shown(value: Any) -> str:
    """A value as it stands in Python; the beginning of a long one."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _agree(one: Any, other: Any) -> bool:
    """Equal, or two names of one activation."""
    if isinstance(one, str) and one in ACTIVATIONS:
        return ACTIVATIONS[one] is ACTIVATIONS.get(other)
    return one == other
