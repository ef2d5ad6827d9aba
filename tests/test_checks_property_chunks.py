"""properties() of an attention that looks back by itself: in chunks = all at once, and each fault has its
name."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.checks import properties
from lesson_lib.heads import Cache, MultiHeadAttention, SinkAttention
from lesson_lib.latent import LatentAttention
from lesson_lib.masks import causal
from lesson_lib.positions import rotary

pytestmark = [pytest.mark.on_cpu, pytest.mark.usefixtures("untried")]
WINDOW = 5


class Step(nn.Module):
    """A layer of attention over its own tokens; each method is a line where faults are made."""

    def __init__(self, window=None, **options):
        super().__init__()
        torch.manual_seed(2)
        self.window = window
        self.attention = MultiHeadAttention(12, 4, n_key_heads=2, d_k=4, rotate=rotary, **options).eval()
        for parameter in self.attention.parameters():
            nn.init.normal_(parameter)

    def mask(self, n, m):
        return causal(m, queries=n, window=self.window)

    def forward(self, x, cache):
        n = x.shape[1]
        return self.attention(x, x, x, mask=self.mask(n, n + len(cache)), cache=cache)


@pytest.mark.parametrize("window", [None, 1, WINDOW])
@pytest.mark.parametrize(
    "options",
    [{}, {"attention": SinkAttention(4)}, {"query_norm": nn.RMSNorm(4), "key_norm": nn.RMSNorm(4)}],
    ids=["plain", "sinks", "norms"],
)
def test_what_is_right_passes(window, options):
    options = {name: part.cpu() for name, part in options.items()}  # they are made before a test's device is
    result = properties(Step(window, **options), cache=partial(Cache, window), window=window)
    assert result.passed, result
    assert len(result.findings) == 7


@pytest.mark.parametrize("absorbed", [False, True])
def test_latent_keys_pass(absorbed):
    layer = LatentAttention(12, 3, d_k=4, d_turned=2, d_v=5, d_latent=6)

    def step(x, cache):
        n = x.shape[1]
        return layer(x, mask=causal(n + len(cache), queries=n), cache=cache, absorbed=absorbed)

    assert properties(step, cache=Cache).passed


def test_a_function_that_masks_itself():
    for window in (None, WINDOW):

        def right(q, k, v, window=window):
            return attend(q, k, v, mask=causal(k.shape[1], queries=q.shape[1], window=window))

        assert properties(right, causal=True, window=window).passed
    unmasked = properties(lambda q, k, v: attend(q, k, v), causal=True)
    assert "the future leaks" in unmasked.diagnosis


# --- planted ---


class TopLeft(Step):
    def mask(self, n, m):
        return torch.ones(n, m).tril().bool()


class OneKeyMore(Step):
    def mask(self, n, m):
        return causal(m, queries=n, window=self.window + 1)


class OneKeyLess(Step):
    def mask(self, n, m):
        return causal(m, queries=n, window=max(1, self.window - 1))


class CountsWhatIsHeld(Step):
    def forward(self, x, cache):
        cache.seen = len(cache)
        return super().forward(x, cache)


class FullMask(Step):
    def mask(self, n, m):
        return causal(m)[-n:]


class Unaware(Step):
    """The first position is always 0."""

    def forward(self, x, cache):
        cache.seen = 0
        return super().forward(x, cache)


class Forgets(Step):
    def forward(self, x, cache):
        made = super().forward(x, cache)
        cache.key, cache.value = cache.key[:, :, -2:], cache.value[:, :, -2:]
        return made


class Leaks(Step):
    def mask(self, n, m):
        return None


class Wrong(Step):
    def forward(self, x, cache):
        return super().forward(x, cache).output.mean(1)


def is_causal(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


PLANTED = [
    (TopLeft(), {"cache": Cache}, "aligned with the first key (top-left"),
    (is_causal, {"causal": True}, "aligned with the first key (top-left"),
    (OneKeyMore(WINDOW), {"cache": Cache, "window": WINDOW},
     "a token sees 6 keys, its own among them, where the window is 5"),
    (OneKeyLess(WINDOW), {"cache": Cache, "window": WINDOW}, "a token sees 4 keys"),
    (CountsWhatIsHeld(WINDOW), {"cache": partial(Cache, WINDOW), "window": WINDOW},
     "count what it has seen (cache.seen, not len(cache))"),
    (FullMask(), {"cache": Cache}, "saves nothing"),
    (Unaware(), {"cache": Cache}, "does not count the tokens before it"),
    (Forgets(WINDOW), {"cache": partial(Cache, WINDOW), "window": WINDOW},
     "with a cache, a token sees 3 keys"),
    (Step(), {"cache": partial(Cache, 4)}, "comes out otherwise than at once"),
    (Leaks(), {"cache": Cache}, "the future leaks"),
    (Wrong(), {"cache": Cache}, "outputs must have shape (2, 23, width)"),
    (lambda x, cache: x / cache, {"cache": Cache}, "stops with TypeError"),
    (Step(WINDOW), {"window": WINDOW}, "window= needs causal=True, or cache="),
    (Step(WINDOW), {"cache": Cache()}, "cache= asks for what makes an empty cache"),
    (Step(WINDOW), {"cache": Cache, "window": 0}, "window must be a whole number"),
    (Step().train().attention, {"cache": Cache, "width": 7}, "stops with"),
]  # fmt: skip


@pytest.mark.parametrize("step, options, said", PLANTED)
def test_a_fault_has_its_name(step, options, said):
    step = step.cpu() if isinstance(step, nn.Module) else step  # made before a test's device is
    result = properties(step, **options)
    assert not result.passed and said in result.diagnosis, result
