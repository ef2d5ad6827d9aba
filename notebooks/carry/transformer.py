"""A Transformer in plain torch: one file to copy into a project. MIT licence.

    Transformer(vocabulary)                  encoder and decoder: model(tokens, source) gives logits
    Transformer(vocabulary, encoder=False)   decoder only: model(tokens) gives logits
    loss_of, train                           every position says the next token; a loop with warm-up
    write, beam                              greedy or drawn (temperature, top-k, top-p), or a beam; cached
    reads_ahead                              a test: does a position see later tokens?
    python transformer.py                    learns dates in four languages, and writes one

Tokens are whole numbers (b, n), padded with 0 on the right; 1 starts a text, 2 ends it: yours begin at 3.
"""

import datetime
import math

import torch
import torch.nn.functional as F
from torch import nn

PAD, START, END = 0, 1, 2


def sinusoidal(n, d, device=None):
    """Codes of n positions, (n, d): a sine and a cosine of each of d / 2 wavelengths."""
    rates = 10_000.0 ** (-torch.arange(0, d, 2, device=device) / d)
    angles = torch.arange(n, device=device)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


def rotary(x, start=0):
    """Queries or keys (..., n, d), turned by their positions; the first stands at `start`."""
    n, d = x.shape[-2:]
    codes = sinusoidal(start + n, d, x.device)[start:].to(x)
    sin, cos = codes[:, 0::2], codes[:, 1::2]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Attention(nn.Module):
    """Several heads: attention(x) asks x itself, attention(x, memory) asks the memory."""

    def __init__(self, d_model, n_heads, rotary=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads=} must divide {d_model=}")
        self.n_heads, self.rotary = n_heads, rotary
        self.w_query = nn.Linear(d_model, d_model, bias=False)
        self.w_key = nn.Linear(d_model, d_model, bias=False)
        self.w_value = nn.Linear(d_model, d_model, bias=False)
        self.w_output = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):  # (b, n, h * d) to (b, h, n, d)
        return x.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)

    def forward(self, x, memory=None, mask=None, cache=None):
        """Output (b, n, d_model). The mask is (..., n, m), True = may look."""
        known = None if cache is None else cache.get(self)  # keys and values of earlier calls
        q = self.split(self.w_query(x))
        if memory is not None and known is not None:
            k, v = known  # a memory does not change while a text is written
        else:
            y = x if memory is None else memory
            k, v = self.split(self.w_key(y)), self.split(self.w_value(y))
            if self.rotary and memory is None:
                start = 0 if known is None else known[0].shape[-2]
                q, k = rotary(q, start), rotary(k, start)
            if known is not None:
                k, v = torch.cat((known[0], k), -2), torch.cat((known[1], v), -2)
            if cache is not None:
                cache[self] = k, v
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.w_output(heads.transpose(-3, -2).flatten(-2))


class Layer(nn.Module):
    """Attention, perhaps attention to a memory, a feed-forward network; a sum and a norm around each."""

    def __init__(self, d, n_heads, *, cross=False, norm_first=True,
                 dropout=0.0, activation=nn.ReLU, rotary=False):
        super().__init__()
        self.norm_first, self.dropout = norm_first, nn.Dropout(dropout)
        self.attention = Attention(d, n_heads, rotary)
        self.cross_attention = Attention(d, n_heads) if cross else None
        wide, back = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.feed_forward = nn.Sequential(wide, activation(), back)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 + cross))

    def forward(self, x, mask=None, memory=None, memory_mask=None, cache=None):
        own, other = self.attention, self.cross_attention
        sublayers = [lambda y: own(y, None, mask, cache), self.feed_forward]
        if other is not None:
            sublayers.insert(1, lambda y: other(y, memory, memory_mask, cache))
        for norm, sublayer in zip(self.norms, sublayers, strict=True):
            if self.norm_first:  # no norm on the residual stream
                x = x + self.dropout(sublayer(norm(x)))
            else:  # post-norm, as published in 2017
                x = norm(x + self.dropout(sublayer(x)))
        return x


class Stack(nn.Module):
    """Layers one after the other; in pre-norm a last norm follows."""

    def __init__(self, n_layers, d_model, n_heads, *, norm_first=True, **options):
        super().__init__()
        layers = (Layer(d_model, n_heads, norm_first=norm_first, **options) for _ in range(n_layers))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, *given):
        for layer in self.layers:
            x = layer(x, *given)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder, or with encoder=False a decoder alone. One table serves as embedding and read-out.

    Options: norm_first (False is post-norm), dropout, activation (nn.GELU), rotary (in place of sinusoids).
    """

    def __init__(self, vocabulary, *, d_model=64, n_heads=4, n_layers=2, encoder=True, **options):
        super().__init__()
        self.rotary, self.dropout = options.get("rotary", False), nn.Dropout(options.get("dropout", 0.0))
        self.table = nn.Parameter(torch.randn(vocabulary, d_model) * d_model**-0.5)
        self.encoder = Stack(n_layers, d_model, n_heads, **options) if encoder else None
        self.decoder = Stack(n_layers, d_model, n_heads, cross=encoder, **options)

    def embed(self, tokens, start=0):
        """Rows (b, n, d_model): the tokens' embeddings, and the codes of their positions."""
        d = self.table.shape[1]
        x = F.embedding(tokens, self.table) * d**0.5  # short rows for the logits, long beside the codes
        if not self.rotary:
            x = x + sinusoidal(start + tokens.shape[1], d, x.device)[start:].to(x)
        return self.dropout(x)

    def encode(self, source):
        """The memory (b, m, d_model), and the mask that hides its padding."""
        if self.encoder is None:
            return None, None
        mask = (source != PAD)[:, None, None, :]  # for all heads and queries
        return self.encoder(self.embed(source), mask), mask

    def decode(self, tokens, memory=None, memory_mask=None, cache=None):
        """Logits. A cache is a dict, empty at first; after that hand in the new tokens alone."""
        n, past = tokens.shape[1], cache.get("past", 0) if cache else 0
        rows = torch.arange(past, past + n, device=tokens.device)
        mask = torch.arange(past + n, device=tokens.device) <= rows[:, None]
        y = self.decoder(self.embed(tokens, past), mask, memory, memory_mask, cache)
        if cache is not None:
            cache["past"] = past + n
        return y @ self.table.T

    def forward(self, tokens, source=None):
        """Logits (b, n, vocabulary): at each position, of the token after it."""
        memory, memory_mask = self.encode(source)
        return self.decode(tokens, memory, memory_mask)


def loss_of(model, target, source=None):
    """Mean cross-entropy of all tokens of target (b, n) but the first, without padding."""
    logits, wanted = model(target[:, :-1], source), target[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD)


def train(model, draw, steps, *, rate=6e-3, warm_up=0.1, clip=1.0, every=100):
    """Train in place. `draw()` gives (target, source), or (target,) for a decoder; 6e-3 suits d_model=64."""
    optimizer = torch.optim.Adam(model.parameters())
    model.train()
    for step in range(1, steps + 1):
        rise, fall = min(1.0, step / max(1, warm_up * steps)), (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = rate * rise * fall  # small at first, and small at the end
        loss = loss_of(model, *draw())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if step % every == 0 or step == steps:
            print(f"step {step:5}  loss {loss.item():.3f}")
    model.eval()


def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """Of the next token, (..., vocabulary): softmax(logits / temperature), the likeliest alone at 0.

    top_k keeps the k likeliest tokens; top_p the fewest likeliest that have p together.
    """
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits)
    p, order = (logits / temperature).softmax(-1).sort(-1, descending=True)
    if top_k is not None:
        p[..., max(1, top_k) :] = 0
    if top_p is not None:
        p = p / p.sum(-1, keepdim=True)
        p = p.masked_fill(p.cumsum(-1) - p >= max(top_p, 1e-9), 0)  # the likelier ones have top_p already
    p = torch.zeros_like(p).scatter(-1, order, p)
    return p / p.sum(-1, keepdim=True)


@torch.no_grad()
def write(model, begin, source=None, *, longest=100, generator=None, **options):
    """Tokens (b, at most `longest`) that continue begin (b, n), up to END, then PAD; greedy, unless `options`
    (those of `probabilities`) say otherwise."""
    if (begin == PAD).any():
        raise ValueError("beginnings must be of one length: padding in them would be read as text")
    memory, written, new, cache = model.encode(source), [], begin, {}
    done = torch.zeros_like(begin[:, :1], dtype=torch.bool)
    for _ in range(longest):
        p = probabilities(model.decode(new, *memory, cache)[:, -1], **{"temperature": 0, **options})
        new = torch.multinomial(p, 1, generator=generator).masked_fill(done, PAD)
        written.append(new)
        done = done | (new == END)
        if done.all():
            break
    return torch.cat(written, 1)


@torch.no_grad()
def beam(model, begin, source=None, *, width=4, longest=100):
    """The `width` best texts found, best first: tokens (width, n) after begin (1, n), and log-probabilities.

    Sums of log-probabilities favour short texts; where lengths differ, divide them by a power of the length.
    """
    memory, cache, new = model.encode(source), {}, begin
    written, total = begin[:, :0], torch.zeros(1, device=begin.device)
    for _ in range(longest):
        logs = model.decode(new, *memory, cache)[:, -1].log_softmax(-1)
        done = (written == END).any(1)
        logs[done] = -torch.inf
        logs[done, PAD] = 0.0  # a complete text stays as it is, and competes
        total, best = (total[:, None] + logs).flatten().topk(min(width, logs.numel()))
        rows, new = best // logs.shape[1], best[:, None] % logs.shape[1]
        written = torch.cat((written[rows], new), 1)
        cache = {k: kept if k == "past" else tuple(x[rows] for x in kept) for k, kept in cache.items()}
        memory = [x if x is None else x[rows] for x in memory]
        if (written == END).any(1).all():
            break
    return written, total


@torch.no_grad()
def reads_ahead(model, target, source=None):
    """For each position i of target (b, n): how far the logits before i move, in all, when another token
    stands there. Zeros where nothing reads ahead. Call model.eval() first: dropout moves them, too."""
    before, moved = model(target, source), []
    for i in range(target.shape[1]):
        changed = target.clone()
        changed[:, i] = (changed[:, i] + 1) % before.shape[-1]
        moved.append((model(changed, source) - before)[:, :i].abs().sum())
    return torch.stack(moved)


WRITTEN = """
{m} {d}, {y}: january february march april may june july august september october november december
{d}. {m} {y}: januar februar märz april mai juni juli august september oktober november dezember
{d} {m} {y}: janvier février mars avril mai juin juillet août septembre octobre novembre décembre
{d} de {m} de {y}: enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""
MONTHS = {form: names.split() for form, names in (line.split(": ") for line in WRITTEN.strip().splitlines())}
CHARACTERS = sorted(set("".join(map("".join, MONTHS.values())) + " 0123456789-.,"))  # numbers 3, 4 ...


def tokens_of(texts, ends=False):
    """Numbers of characters (b, n), padded; with ends=True between START and END."""
    rows = [[CHARACTERS.index(character) + 3 for character in text] for text in texts]
    rows = [[START, *row, END] if ends else row for row in rows]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def text_of(tokens):
    return "".join(CHARACTERS[token - 3] for token in tokens.tolist() if token > END)


def dates(b, test=False):
    """b dates as people write them, and in ISO 8601. Of ten days the first is kept for testing."""
    sources, targets = [], []
    for ten in torch.randint(3_652, (b,)).tolist():  # a hundred years
        number = 711_858 + 10 * ten + (0 if test else int(torch.randint(1, 10, ())))  # from 1950 on
        day, form = datetime.date.fromordinal(number), list(MONTHS)[int(torch.randint(4, ()))]
        sources.append(form.format(d=day.day, m=MONTHS[form][day.month - 1], y=day.year))
        targets.append(day.isoformat())
    return sources, targets


def draw(b=48):
    sources, targets = dates(b)
    return tokens_of(targets, ends=True), tokens_of(sources)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Transformer(len(CHARACTERS) + 3)
    train(model, draw, steps=800)
    sources, targets = dates(500, test=True)
    source, target = tokens_of(sources), tokens_of(targets, ends=True)
    said = [text_of(row) for row in write(model, target[:, :1], source, longest=11)]
    right = sum(one == other for one, other in zip(said, targets, strict=True)) / 500
    print(f"right on unseen days: {right:.2f}\n{sources[0]} -> {said[0]}")
    print(f"reads ahead: {reads_ahead(model, target[:9], source[:9]).max():.1f}")
