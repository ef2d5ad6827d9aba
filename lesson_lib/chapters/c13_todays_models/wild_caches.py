"""Found in the wild, first: three programs that keep what was read, written as such programs are, with
the faults that their users reported. Each stands in one function, so that a check can run it.

Reported: torch's is_causal with fewer queries than keys (pytorch#103082, #108108, #144858); windows with a
cache, of 128 keys or of 129 (rasbt/LLMs-from-scratch#925, karpathy/nanochat#452, transformers#37574). Padding
on the left is as old as generation in batches.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exchanged import exchanged
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, numbers_made
from lesson_lib.masks import causal
from lesson_lib.positions import rotary

GIVEN = "this is still the function as it was given"


# --- a prompt in chunks ---


def read_prompt(
    x: Float[Tensor, "n d"],
    w_qkv: Float[Tensor, "three_d d"],
    w_out: Float[Tensor, "d d"],
    n_heads: int,
    chunk: int,
) -> Float[Tensor, "n d"]:
    class KeyValueCache:
        """Grows with every chunk; the newest tokens are the last."""

        def __init__(self):
            self.keys = self.values = None

        @property
        def length(self):
            return 0 if self.keys is None else self.keys.shape[1]

        def update(self, keys, values):
            if self.keys is not None:
                keys = torch.cat((self.keys, keys), dim=1)
                values = torch.cat((self.values, values), dim=1)
            self.keys, self.values = keys, values
            return keys, values

    def apply_rotary(t, offset):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = (offset + torch.arange(t.shape[-2]))[:, None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[..., :half], t[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def split_heads(t):
        return t.unflatten(-1, (n_heads, -1)).transpose(0, 1)

    def attention(part, cache):
        offset = cache.length
        query, key, value = (split_heads(t) for t in (part @ w_qkv.mT).chunk(3, dim=-1))
        query, key = apply_rotary(query, offset), apply_rotary(key, offset)
        key, value = cache.update(key, value)
        n, m = query.shape[1], key.shape[1]
        mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return out.transpose(0, 1).flatten(1) @ w_out.mT

    cache = KeyValueCache()
    return torch.cat([attention(part, cache) for part in x.split(chunk)])


def _prompt_at_once(x: Tensor, w_qkv: Tensor, w_out: Tensor, n_heads: int, chunk: int) -> Tensor:
    q, k, v = (t.unflatten(-1, (n_heads, -1)).transpose(0, 1) for t in (x @ w_qkv.mT).chunk(3, -1))
    q, k = (rotary(t, pairing="half-split") for t in (q, k))
    return attend(q, k, v, mask=causal(len(x))).output.transpose(0, 1).flatten(1) @ w_out.mT


def _prompt(seed: int, n: int, d: int, n_heads: int, chunk: int, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, d), "w_qkv": draw(seed + 1, 3 * d, d), "w_out": draw(seed + 2, d, d),
        "n_heads": n_heads, "chunk": chunk,
    }  # fmt: skip


CORNER = ("attn_mask=mask", "is_causal=True")
FROM_0 = ("offset = cache.length", "offset = 0")

prompt = Write(
    name="read_prompt",
    title="Found in the wild: a prompt in chunks",
    stars=2,
    minutes=10,
    why="long prompts are read in chunks; this was reported three times, in the library that all others use",
    asked=(
        "repair: one layer reads a prompt of n tokens, `chunk` at a time, and keeps keys and values. The"
        " result is to be that of the whole prompt read at once. Nobody knows how many faults there are"
    ),
    repair=True,
    stages=(
        Stage(
            "the whole prompt is one chunk, then one token",
            lambda: [_prompt(1, 3, 4, 2, 3), _prompt(5, 1, 4, 1, 2)],
            "With one chunk nothing is kept. If this fails, what you changed was right before.",
        ),
        Stage(
            "two tokens, one at a time",
            lambda: [_prompt(11, 2, 4, 1, 1)],
            "The second token must see both, and stands at place 1.",
        ),
        Stage(
            "seven tokens in chunks of three",
            lambda: [_prompt(21, 7, 4, 2, 3), _prompt(31, 9, 8, 2, 4)],
            "Token i sees tokens 0 to i, whatever chunk they came in, and each stands at its own place.",
        ),
    ),
    reference=_prompt_at_once,
    hints=(
        "Which result should chunks of 1, of 3 and of n have in common? Where does a first difference show?",
        "A chunk of 3 behind 3 kept tokens: its mask has 3 rows and 6 columns. Which corner does"
        " is_causal=True start from?",
        "At which place stands the first token of the second chunk, and who knows that?",
    ),
    solution=read_prompt,
    hidden=lambda draw: [_prompt(41, 8, 4, 1, 3, draw), _prompt(51, 5, 8, 4, 2, draw)],
    remember="in chunks = all at once: one line tests masks, places and caches together",
    slips={
        GIVEN: (*CORNER, *FROM_0),
        "the places are right; is_causal=True starts the triangle at the first key, not the last": CORNER,
        "the mask is right; each chunk starts again at place 0": FROM_0,
        "every token of a chunk sees the whole chunk: those behind it, too": (
            "attn_mask=mask", "attn_mask=None",
        ),
        "the triangle is shifted the other way: tril(m - n)": ("tril(m - n)", "tril(n - m)"),
        "a token does not see itself": ("tril(m - n)", "tril(m - n - 1)"),
        "the keys are kept before they are turned": (
            "query, key = apply_rotary(query, offset), apply_rotary(key, offset)",
            "query = apply_rotary(query, offset)",
        ),
        "only the queries are turned by their place in the text; new keys start again at place 0": (
            "apply_rotary(key, offset)",
            "apply_rotary(key, 0)",
        ),
        "the first chunk is right; in later ones nothing is hidden, so tokens see those behind them": (
            "mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)",
            "mask = torch.ones(n, m, dtype=torch.bool).tril(m - n if n == m else m)",
        ),
        "new keys stand at their places; the queries of a chunk start again at place 0": (
            "apply_rotary(query, offset)",
            "apply_rotary(query, 0)",
        ),
        "the offset is counted twice: a chunk begins behind what is kept": (
            "offset = cache.length",
            "offset = 2 * cache.length",
        ),
        "the offset counts the chunk's own tokens, too: it begins behind what was kept BEFORE it": (
            "offset = cache.length",
            "offset = cache.length + len(part)",
        ),
        "the offset counts chunks; it must count their tokens": (
            "offset = cache.length",
            "offset = cache.length // chunk",
        ),
        "the table of angles is kept by its length: later chunks of that length get the first one's places": (
            "    def apply_rotary(t, offset):",
            "    tables = {}\n\n    def apply_rotary(t, offset):",
            "angle = (offset + torch.arange(t.shape[-2]))[:, None] * speed",
            "angle = tables.setdefault(t.shape[-2], (offset + torch.arange(t.shape[-2]))[:, None] * speed)",
        ),
        "keys are turned when they come, and all of them once more: kept keys are turned already": (
            "key, value = cache.update(key, value)",
            "key, value = cache.update(key, value)\n        key = apply_rotary(key, 0)",
        ),
        "a token sees the one behind it: the triangle is one too wide, tril(m - n)": (
            "tril(m - n)",
            "tril(m - n + 1)",
        ),
        "the mask is the other way round: True = may look": ("attn_mask=mask", "attn_mask=~mask"),
        **exchanged("query, key = apply_rotary", indent=8),
        "queries and keys are not turned": (
            "        query, key = apply_rotary(query, offset), apply_rotary(key, offset)\n",
            "",
        ),
        "the queries count the offset twice, the keys once": (
            "apply_rotary(query, offset)",
            "apply_rotary(query, 2 * offset)",
        ),
        "the keys count the offset twice, the queries once": (
            "apply_rotary(key, offset)",
            "apply_rotary(key, 2 * offset)",
        ),
        "the queries stand one place behind their own keys": (
            "apply_rotary(query, offset)",
            "apply_rotary(query, offset + 1)",
        ),
    },
)  # fmt: skip


# --- a window that rolls ---


def read_window(
    x: Float[Tensor, "n d"],
    w_query: Float[Tensor, "d_k d"],
    w_key: Float[Tensor, "d_k d"],
    w_value: Float[Tensor, "d_v d"],
    window: int,
    chunk: int,
) -> Float[Tensor, "n d_v"]:
    class RollingCache:
        """Keeps what the next token can still see: window - 1 tokens."""

        def __init__(self):
            self.key = x.new_zeros(0, len(w_key))
            self.value = x.new_zeros(0, len(w_value))
            self.seen = 0

        def update(self, key, value):
            key = torch.cat((self.key, key))
            value = torch.cat((self.value, value))
            first = max(0, len(key) - (window - 1))
            self.key, self.value = key[first:], value[first:]
            return key, value

    def apply_rotary(t, position):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = position[:, None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[:, :half], t[:, half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def attention(part, cache):
        position = cache.seen + torch.arange(len(part))
        query = apply_rotary(part @ w_query.mT, position)
        key = apply_rotary(part @ w_key.mT, position)
        key, value = cache.update(key, part @ w_value.mT)
        cache.seen += len(part)
        key_position = cache.seen - len(key) + torch.arange(len(key))
        distance = position[:, None] - key_position
        mask = (distance >= 0) & (distance < window)
        batch = query[None], key[None], value[None]
        return F.scaled_dot_product_attention(*batch, attn_mask=mask)[0]

    cache = RollingCache()
    return torch.cat([attention(part, cache) for part in x.split(chunk)])


def _window_at_once(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, window: int, chunk: int
) -> Tensor:
    q, k = (rotary(x @ w.mT, pairing="half-split") for w in (w_query, w_key))
    return attend(q, k, x @ w_value.mT, mask=causal(len(x), window=window)).output


def _windowed(seed: int, n: int, window: int, chunk: int, draw: Draw = drawn) -> Case:
    return {
        "x": draw(seed, n, 4), "w_query": draw(seed + 1, 4, 4), "w_key": draw(seed + 2, 4, 4),
        "w_value": draw(seed + 3, 3, 4), "window": window, "chunk": chunk,
    }  # fmt: skip


def _forgets(answer: Callable) -> str | None:
    """The sentence, where twice the text takes far more than twice the numbers, with one window."""

    def work(n: int) -> int:
        case = _windowed(1, n, 4, 8)
        return numbers_made(lambda: answer(*case.values()))

    if work(256) > 3 * work(128):
        return (
            "the rows are right, and nothing is thrown away: twice the tokens take far more than twice the"
            " numbers. What can no later token see?"
        )
    return None


SEEN = ("position = cache.seen +", "position = len(cache.key) +")
KEPT = ("return key, value\n\n    def apply", "return self.key, self.value\n\n    def apply")
WIDE = ("distance < window", "distance <= window")

rolling = Write(
    name="read_window",
    title="Found in the wild: a window that rolls",
    stars=3,
    minutes=12,
    why="Mistral's first users, Gemma's and gpt-oss's met this: 128 keys or 129?",
    asked=(
        "repair: one head reads n tokens, `chunk` at a time. A token looks at `window` tokens, itself among"
        " them; what no later token can see is thrown away. The result is to be that of all tokens at once,"
        " under a mask. Nobody knows how many faults there are"
    ),
    repair=True,
    stages=(
        Stage(
            "three tokens at once, a window of one hundred",
            lambda: [_windowed(1, 3, 100, 3)],
            "Nothing is thrown away, nothing is too far. If this fails, what you changed was right before.",
        ),
        Stage(
            "six tokens at once, a window of two",
            lambda: [_windowed(11, 6, 2, 6)],
            "All six are read at once, so all six keys are there; the mask alone says who sees whom: two.",
        ),
        Stage(
            "one at a time, a window of three",
            lambda: [_windowed(21, 7, 3, 1), _windowed(31, 5, 1, 1)],
            "Two tokens are kept. The seventh stands at place 6 all the same.",
        ),
        Stage(
            "chunks of two, three and four",
            lambda: [
                _windowed(41, 9, 4, 2), _windowed(51, 10, 3, 4), _windowed(61, 8, 5, 3),
                {**_windowed(71, 9, 4, 3), "w_value": drawn(79, 4, 4)},
            ],
            "The first token of a chunk needs what is kept; the last one decides what to keep.",
        ),
    ),
    reference=_window_at_once,
    extra=_forgets,
    hints=(
        "How many keys does a token see if the distance may be 0 to window? And how many should it?",
        "A chunk of four and a window of three: which keys does the first of the four need, and are they"
        " still there when it asks?",
        "len(cache.key) stops growing. Which number does not?",
    ),
    solution=read_window,
    hidden=lambda draw: [_windowed(71, 9, 3, 2, draw), _windowed(81, 7, 2, 3, draw)],
    remember="first answer, then forget; count what was seen, not what is kept",
    slips={
        GIVEN: (*SEEN, *KEPT, *WIDE),
        "two faults are left: places stop growing, and a window of 3 sees 4": (*SEEN, *WIDE),
        "one fault is left: a place is counted by what is kept, and that stops growing": SEEN,
        "the keys are cut before the chunk has looked at them; how wide the window is shows after that": KEPT,
        "one fault is left: distances 0 to window are one token too many": WIDE,
        "one token too few is kept": ("(window - 1)", "max(0, window - 2)"),
        "one key more is kept, yet cut before the chunk has looked: return all keys, keep window - 1": (
            "(window - 1)", "window", *KEPT,
        ),
        "the mask has no window: what is kept is cut, but a chunk's own keys may lie too far back": (
            "(distance >= 0) & (distance < window)",
            "distance >= 0",
        ),
        "one fault is left: the queries of a chunk start again at place 0": (
            "apply_rotary(part @ w_query.mT, position)",
            "apply_rotary(part @ w_query.mT, torch.arange(len(part)))",
        ),
        "one fault is left: the keys of a chunk start again at place 0": (
            "apply_rotary(part @ w_key.mT, position)",
            "apply_rotary(part @ w_key.mT, torch.arange(len(part)))",
        ),
        "one fault is left: what was seen before is counted twice in the places": (
            "apply_rotary(part @ w_query.mT, position)",
            "apply_rotary(part @ w_query.mT, position + cache.seen)",
            "apply_rotary(part @ w_key.mT, position)",
            "apply_rotary(part @ w_key.mT, position + cache.seen)",
        ),
        "one fault is left: the mask numbers kept keys from 0; the first of them has a place of its own": (
            "cache.seen - len(key) + torch",
            "torch",
        ),
        "one token too few is seen: distances 0 to window - 1 are `window` tokens": (
            "distance < window",
            "distance < window - 1",
        ),
        "one token too many is kept, and seen: a window of 3 is the own token and two before it": (
            "(window - 1)",
            "window",
            "distance < window",
            "distance <= window",
        ),
        "later tokens of a chunk are seen": ("(distance >= 0) & ", ""),
        **exchanged("cache = RollingCache()", "w_query w_key w_value"),
        "one fault is left: what turns queries and keys counts what is kept, and that stops growing": (
            "apply_rotary(part @ w_query.mT, position)",
            "apply_rotary(part @ w_query.mT, len(cache.key) + torch.arange(len(part)))",
            "apply_rotary(part @ w_key.mT, position)",
            "apply_rotary(part @ w_key.mT, len(cache.key) + torch.arange(len(part)))",
        ),
        "the mask is the other way round: True = may look": ("attn_mask=mask", "attn_mask=~mask"),
        "one fault is left: queries and keys start again at place 0 in each chunk": (
            "apply_rotary(part @ w_query.mT, position)",
            "apply_rotary(part @ w_query.mT, torch.arange(len(part)))",
            "apply_rotary(part @ w_key.mT, position)",
            "apply_rotary(part @ w_key.mT, torch.arange(len(part)))",
        ),
        "queries and keys are not turned": (
            "apply_rotary(part @ w_query.mT, position)",
            "part @ w_query.mT",
            "apply_rotary(part @ w_key.mT, position)",
            "part @ w_key.mT",
        ),
        "the queries stand one place behind their own keys": (
            "apply_rotary(part @ w_query.mT, position)",
            "apply_rotary(part @ w_query.mT, position + 1)",
        ),
    },
)  # fmt: skip


# --- texts of different lengths, padded on the left ---


def next_logits(
    tokens: Int[Tensor, "b n"],
    table: Float[Tensor, "n_tokens d"],
    weights: Float[Tensor, "layers four d d"],
    pad: int,
) -> Float[Tensor, "b n_tokens"]:
    def apply_rotary(t, position):
        half = t.shape[-1] // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = position[..., None] * speed
        cos, sin = angle.cos(), angle.sin()
        a, b = t[..., :half], t[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def prepare(tokens):
        """Where each token stands in its own text, and who may look at whom."""
        real = tokens != pad
        position = (real.cumsum(-1) - 1).clamp(min=0)
        n = tokens.shape[1]
        past = torch.ones(n, n, dtype=torch.bool).tril()
        return position, past & real[:, None, :]

    def layer(x, w, position, mask):
        query, key, value = (x @ one.mT for one in w[:3])
        query, key = apply_rotary(query, position), apply_rotary(key, position)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out = torch.where(mask.any(-1, keepdim=True), out, 0.0)
        return x + out @ w[3].mT

    position, mask = prepare(tokens)
    x = table[tokens]
    for w in weights:
        x = layer(x, w, position, mask)
    last = x[:, -1]
    return last @ table.mT


def _text_by_text(tokens: Tensor, table: Tensor, weights: Tensor, pad: int) -> Tensor:
    rows = []
    for text in tokens:
        x = table[text[text != pad]]
        for w in weights:
            q, k, v = (x @ one.mT for one in w[:3])
            q, k = (rotary(t, pairing="half-split") for t in (q, k))
            x = x + attend(q, k, v, mask=causal(len(x))).output @ w[3].mT
        rows.append(x[-1] @ table.mT)
    return torch.stack(rows)


def _texts(seed: int, lengths: list[int], layers: int = 2, d: int = 4, draw: Draw = drawn) -> Case:
    """Texts of these lengths, numbers from 1 on; 0 fills up on the left."""
    n = max(lengths)
    tokens = 1 + (10 * draw(seed, len(lengths), n)).long() % 6
    missing = n - torch.tensor(lengths, device="cpu")
    tokens = tokens * (torch.arange(n, device="cpu") >= missing[:, None])
    return {
        "tokens": tokens, "table": draw(seed + 1, 7, d), "weights": 0.7 * draw(seed + 2, layers, 4, d, d),
        "pad": 0,
    }  # fmt: skip


PLACES = (
    "(real.cumsum(-1) - 1).clamp(min=0)",
    "torch.arange(tokens.shape[1]).expand(tokens.shape)",
)
HIDDEN = ("real[:, None, :]", "~real[:, None, :]")
AT_END = ("last = x[:, -1]", "last = x[torch.arange(len(x)), (tokens != pad).sum(-1) - 1]")

padded = Write(
    name="next_logits",
    title="Found in the wild: a batch padded on the left",
    stars=3,
    minutes=12,
    why="texts that are continued together must end together, so they are filled up on the left",
    asked=(
        "repair: texts of different lengths in one batch, filled up on the LEFT with the token `pad`. Return"
        " the logits of what follows each text: those of the text by itself. torch's attn_mask: True = may"
        " look. Nobody knows how many faults there are"
    ),
    repair=True,
    stages=(
        Stage(
            "two texts of one length",
            lambda: [_texts(1, [2, 2], layers=1)],
            "There is no padding, so the mask must hide nothing but the future.",
        ),
        Stage(
            "two tokens and four, one layer",
            lambda: [_texts(11, [2, 4], layers=1), _texts(15, [1, 3], layers=1)],
            "The short text begins behind the padding and ends in the last column, as all do.",
        ),
        Stage(
            "two layers, three texts",
            lambda: [_texts(21, [3, 5, 1]), _texts(31, [4, 2, 6, 6])],
            "What padding makes of itself must reach nobody.",
        ),
    ),
    reference=_text_by_text,
    hints=(
        "What must stay the same if one more column of padding is put in front of all texts?",
        "Does True mean 'may look' or 'is hidden' here? In which column does each text end?",
        "With rotary positions only distances count. Does it matter then that padding is counted? What says"
        " the check?",
    ),
    solution=next_logits,
    hidden=lambda draw: [_texts(41, [2, 5], draw=draw), _texts(51, [3, 1, 4], d=6, draw=draw)],
    remember="padding in front must change nothing: put a column more there and compare",
    slips={
        GIVEN: (*HIDDEN, *AT_END),
        "the mask is right; all texts end in the last column, x[:, -1]": AT_END,
        "the last column is right; the mask shows the padding and hides the text": HIDDEN,
        "the mask hides the padding, but a token sees the future, too": (
            "past & real[:, None, :]", "real[:, None, :]",
        ),
        "the padding is looked at": ("past & real[:, None, :]", "past.expand(len(tokens), n, n)"),
        "hide the padding as keys; queries are the rows": ("real[:, None, :]", "real[:, :, None]"),
        "the keys are not turned, the queries are": ("apply_rotary(key, position)", "key"),
        "the queries are not turned, the keys are": ("apply_rotary(query, position)", "query"),
        "the mask is the other way round: True = may look": (
            "past & real[:, None, :]",
            "~(past & real[:, None, :])",
        ),
        "a token sees those behind it only: the triangle is the lower one, .tril()": (".tril()", ".triu()"),
        "a token does not see itself: keep the diagonal": (".tril()", ".tril(-1)"),
        "the places are counted twice": ("return position, past", "return 2 * position, past"),
        **exchanged("query, key = apply_rotary", indent=8),
        "queries and keys are not turned": (
            "        query, key = apply_rotary(query, position), apply_rotary(key, position)\n",
            "",
        ),
    },
)  # fmt: skip

ASKED = (prompt, rolling, padded)
