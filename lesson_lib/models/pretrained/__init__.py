"""Models that others have published, opened from a folder on your disk: GPT-2, BERT, ViT, Llama, Mistral,
Ministral 3, Qwen2 and 3, SmolLM3, Granite, Phi-3 and 4, OLMo 2 and 3, Gemma 2 and 3, gpt-oss, Starcoder2. All
of them are one `Model` around `attend`.

    model = open_model("a/folder")              config.json and model.safetensors, or shards
    model(tokens, weights=True)                 logits, states, every layer's weights, the residual stream
    python -m lesson_lib model a/folder         what it is, layer by layer

Nothing is fetched from a network. Where there is one, the hub's own tool fetches a folder:
`hf download Qwen/Qwen3-0.6B --local-dir a/folder`.

model       Options, Kind and the Model itself: the few ways in which the families differ
config      a family's config.json as Options
fields      what is known of other fields: harmless, of one value, or repeating another; else refused by name
names       what each family calls its tensors
files       open_model, save_model, new_model, from_gpt; characters: texts without the tokenizers package
causes      why a folder is not opened: a pointer in a file's place, an adapter, another head, another format
described   what a model is, in words; card: on one picture, from any config.json
against     the first step at which our model and that of transformers part
inside      cut a head, patch a token's row, read layers' states as logits, open a text

SMALL_WRITER is the folder of a small Llama that comes with the course (its README.md says what it is).
"""

from pathlib import Path

from lesson_lib.models.pretrained.card import Card, card
from lesson_lib.models.pretrained.config import options
from lesson_lib.models.pretrained.described import described, kept, kept_per_token, unusual
from lesson_lib.models.pretrained.files import from_gpt, new_model, open_model, save_model
from lesson_lib.models.pretrained.inside import Opened, cut, exchanged, lens, opened, patched, without_each
from lesson_lib.models.pretrained.model import Kind, Model, ModelOutput, Options, Turn, generate

SMALL_WRITER = Path(__file__).parent / "small_writer"

__all__ = [
    "SMALL_WRITER",
    "Card",
    "Kind",
    "Model",
    "ModelOutput",
    "Opened",
    "Options",
    "Turn",
    "card",
    "cut",
    "described",
    "exchanged",
    "from_gpt",
    "generate",
    "kept",
    "kept_per_token",
    "lens",
    "new_model",
    "open_model",
    "opened",
    "options",
    "patched",
    "save_model",
    "unusual",
    "without_each",
]  # fmt: skip
