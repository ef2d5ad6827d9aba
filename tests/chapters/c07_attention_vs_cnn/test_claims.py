"""The claims about pictures, convolutions and attention: one test each, named after its id."""

import math
from statistics import median

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn.detr import Detr
from lesson_lib.chapters.c07_attention_vs_cnn.sagan import Generator, noise
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import SIZE
from lesson_lib.chapters.c07_attention_vs_cnn.vit import VisionTransformer, patchify
from lesson_lib.convolution import (
    Near,
    PixelAttention,
    as_attention,
    offsets,
    receptive_field,
    with_few_heads,
)
from lesson_lib.data.milestones import MILESTONES
from lesson_lib.experiments import results
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.positions import frequencies, rotation, sinusoidal

B, C, H, W = 2, 3, 7, 11


def conv(kernel=3, c_in=C, c_out=C, **options):
    return nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2, **options)


def as_tokens(x):
    """Pixels in a row, each with its channels: (b, h · w, c)."""
    return x.flatten(2).mT


def shares_of(layer, h=7, w=7):
    """How much of each tap's pixel the heads bring to the pixel in the middle: (heads, taps)."""
    table = layer.heads(torch.zeros(1, layer.values.shape[-1], h, w), weights=True).weights[0]
    p = layer.border
    canvas = table[:, (h // 2) * w + w // 2].unflatten(-1, (h + 2 * p, w + 2 * p))
    return canvas[:, h // 2 : h // 2 + 2 * p + 1, w // 2 : w // 2 + 2 * p + 1].flatten(1)


def test_cnn_1_a_head_for_each_tap_is_enough():
    for kernel, c_in, c_out in ((1, 2, 5), (3, 3, 5), (5, 5, 2)):
        layer, x = conv(kernel, c_in, c_out), torch.randn(B, c_in, H, W)
        heads = as_attention(layer)
        assert len(heads.values) == kernel**2
        assert_close(heads(x), layer(x), atol=1e-4, rtol=0)
        layer, x = layer.double(), x.double()
        assert_close(as_attention(layer)(x), layer(x), atol=1e-8, rtol=0)
    # in the limit only: a soft head brings its neighbours too, e^-sharpness of each
    layer, x = conv().double(), torch.randn(1, C, H, W, dtype=torch.float64)
    errors = {s: (as_attention(layer, sharpness=s)(x) - layer(x)).abs().max().item() for s in (1, 10, 20)}
    assert errors[1] > 0.1 and errors[20] < 1e-7
    assert math.log(errors[10] / errors[20]) == pytest.approx(10, abs=1)


def test_cnn_1_one_channel_needs_two_heads_and_no_more():
    layer, x = conv(c_in=1, c_out=1), torch.randn(B, 1, H, W)
    assert layer.weight.min() < 0 < layer.weight.max()
    two = with_few_heads(layer)
    assert len(two.values) == 2
    assert_close(two(x), layer(x), atol=1e-5, rtol=0)
    # one head's shares are positive, so all its taps have one sign; its best is to leave the other sign out
    assert shares_of(two).min() >= 0


def test_cnn_1_fewer_heads_than_the_rank_of_the_taps_cannot():
    """Heads that look by position alone: the table (taps, c_out · c_in) they make is a sum of as many
    products as there are heads."""
    layer = conv(c_in=4, c_out=5)
    wanted = layer.weight.detach().flatten(2).movedim(-1, 0).flatten(1)  # (9, 20)
    assert torch.linalg.matrix_rank(wanted) == 9
    scores = torch.randn(4, 9)
    four = PixelAttention(
        lambda d: torch.where(
            (d.abs() <= 1).all(-1), scores[:, (3 * d[..., 0] + d[..., 1] + 4).long().clamp(0, 8)], -torch.inf
        ),
        torch.randn(4, 5, 4),
        None,
        border=1,
    )
    # what they do to a single bright pixel in each channel is their kernel
    bright = torch.zeros(4, 4, 5, 5)
    bright[range(4), range(4), 2, 2] = 1
    made = four(bright)[:, :, 1:4, 1:4].flip(-1, -2).flatten(2).permute(2, 1, 0).flatten(1)
    assert_close(made, shares_of(four).T @ four.values.flatten(1), atol=1e-5, rtol=0)
    assert torch.linalg.matrix_rank(made, atol=1e-4) == 4
    # so the nearest table is this far away (Eckart-Young), and it is not near
    assert torch.linalg.svdvals(wanted)[4:].norm() > 0.3 * wanted.norm()


def test_cnn_1_a_head_narrower_than_the_rank_of_its_tap_cannot():
    layer, x = conv(1, 5, 5, bias=False), torch.randn(1, 5, H, W)
    outputs = as_tokens(layer(x))[0]
    assert torch.linalg.matrix_rank(outputs) == torch.linalg.matrix_rank(layer.weight[..., 0, 0]) == 5
    values, table = torch.randn(5, 2) @ torch.randn(2, 5), torch.rand(H * W, H * W)  # width 2, any weights
    assert torch.linalg.matrix_rank(table @ as_tokens(x)[0] @ values, rtol=1e-4) == 2
    assert torch.linalg.svdvals(outputs)[2] > 0.1
    # the whole layer: heads · width is at least the rank of the taps side by side
    wide = conv(3, 5, 7)
    assert torch.linalg.matrix_rank(wide.weight.flatten(1)) == 7
    assert torch.linalg.matrix_rank(as_attention(wide).values).min() == 5


def test_cnn_1_two_numbers_for_a_step_are_too_few_when_they_are_the_step_itself():
    """Scores v · (d_y, d_x) have no top inside: the middle of 3 x 3 gets a ninth at most. With |d|² beside
    them it gets all."""
    d = offsets(3, 3)[4]  # from the pixel in the middle
    weights = (1.5 * torch.randn(1000, 2) @ d.T).softmax(-1)
    assert weights[:, 4].max() <= 1 / 9 + 1e-6
    encoding = torch.cat([d.square().sum(-1, keepdim=True), d], -1)
    assert (encoding @ torch.tensor([-20.0, 0, 0])).softmax(-1)[4] > 0.999


@pytest.mark.parametrize("n_heads", [1, 9, 26])
def test_cnn_1_without_positions_no_number_of_heads_can(n_heads):
    """Where pixels change places, so do the outputs: what a pixel's neighbours are, attention cannot know."""
    attention = MultiHeadAttention(234, n_heads).eval()
    x = torch.randn(1, 234, 3, 5)
    order = torch.randperm(15)
    tokens = as_tokens(x)
    straight, shuffled = attention(tokens, tokens, tokens), attention(*[tokens[:, order]] * 3)
    assert_close(shuffled.output, straight.output[:, order], atol=1e-5, rtol=0)
    layer = conv(c_in=234, c_out=3)
    moved = as_tokens(x)[:, order].mT.reshape(x.shape)
    assert (as_tokens(layer(moved)) - as_tokens(layer(x))[:, order]).abs().max() > 0.1
    # a convolution with one tap needs no neighbours, and is the exception
    point = conv(1, 234, 3)
    assert_close(as_tokens(point(moved)), as_tokens(point(x))[:, order], atol=1e-5, rtol=0)


def test_cnn_2():
    x, pixel = torch.randn(B, C, 9, 13), (4, 6)

    def seen(layer):
        return int((receptive_field(layer, x, pixel) > 0).sum())

    def over_tokens(attention):
        return lambda x: attention(*[as_tokens(x)] * 3).output.mT.unflatten(-1, x.shape[-2:])

    # one layer: its kernel against all pixels; a stack of convolutions sees as far as it is deep
    assert [seen(conv(kernel)) for kernel in (1, 3, 5)] == [1, 9, 25]
    assert seen(over_tokens(attend)) == seen(over_tokens(MultiHeadAttention(C, 1).eval())) == 9 * 13
    stack = [nn.Sequential(*(conv() for _ in range(depth))) for depth in (2, 3, 6)]
    assert [seen(layers) for layers in stack] == [25, 49, 9 * 13]
    # what is seen need not be used: the weights say how much each pixel counts, and where they look is
    # learned
    x, pixel = torch.randn(8, C, 7, 9), (3, 4)
    near = Near(torch.zeros(1, 2), torch.tensor([0.3]))
    head = PixelAttention(near, torch.eye(C)[None], None, border=2)
    # each pixel is to become what stands one further down and two to the right
    wanted = F.pad(x, (-2, 2, -1, 1))
    before = receptive_field(head, x, pixel)
    optimizer = torch.optim.Adam(near.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        (head(x) - wanted).square().mean().backward()
        optimizer.step()
    after = receptive_field(head, x, pixel)
    assert divmod(int(before.argmax()), 9) == (3, 4) and before.max() < 0.2 * before.sum()
    assert divmod(int(after.argmax()), 9) == (4, 6) and after.max() > 0.85 * after.sum()


def points(task, budget="long"):
    """Accuracy on test canvases: (model, n) -> one number per seed, stored; n is None for fresh canvases at
    every step."""
    found = {}
    for row in results("vit")["rows"]:
        if row["kind"] == "point" and (row["task"], row["budget"]) == (task, budget):
            found.setdefault((row["model"], None if row["fresh"] else row["n"]), []).append(row["accuracy"])
    assert {len(seeds) for seeds in found.values()} == {3}
    return found


def ahead(found):
    """How far the CNN is ahead of the ViT, by n, at the median of the seeds."""
    return {n: median(found["cnn", n]) - median(found["vit", n]) for model, n in found if model == "vit"}


def test_cnn_3():
    """Few canvases: the convolutions are ahead. Many: less far, but ahead; and how far depends on the number
    of steps as well."""
    vit, x = VisionTransformer(20, 5, 2), torch.randn(B, 1, 20, 20)
    weight = vit.patches.weight.flatten(1)
    assert_close(
        vit.patches(x).flatten(2).mT, patchify(x, 5) @ weight.T + vit.patches.bias, atol=1e-5, rtol=0
    )
    for task in ("digit", "pair"):
        found = points(task)
        gap, hasty = ahead(found), ahead(points(task, "short"))
        assert min(found["cnn", 1000]) > max(found["vit", 1000])
        assert gap[1000] > 0.1 and gap[1000] / 2 > gap[25_000] > -0.01
        assert min(gap.values()) > -0.02  # no crossover
        assert hasty[25_000] > 2 * gap[25_000]  # the same data: steps count too


def test_cnn_4():
    picture = torch.rand(3, 5, 10)  # channels, rows, columns
    vectors = as_tokens(picture[None])[0]
    assert vectors.shape == (50, 3)
    for down, right in ((0, 0), (0, 9), (1, 0), (4, 9)):
        assert torch.equal(vectors[10 * down + right], picture[:, down, right])
    assert torch.equal(vectors.T.reshape(3, 5, 10), picture)
    # a set: attention does not ask in which order they come
    order = torch.randperm(50)
    assert_close(attend(*[vectors[order]] * 3).output, attend(*[vectors] * 3).output[order])


def test_cnn_5():
    """Both put attention between the places of a CNN's features: fewer of them than pixels, and each with
    more numbers."""
    generator = Generator("attention")
    tokens = {}
    generator.middle.register_forward_pre_hook(lambda _, given: tokens.update(sagan=given[0]))
    made = generator(
        noise(B, torch.Generator("cpu").manual_seed(0)).to(torch.get_default_device()), weights=True
    )
    assert tokens["sagan"].shape[-2:].numel() == made.weights.shape[-1] == 48 < made.canvas[0].numel() == 192
    assert tokens["sagan"].shape[1] == 32
    assert isinstance(generator.first[0], nn.Conv2d) and isinstance(generator.second[0], nn.Conv2d)
    # it starts as the convolutions alone: what attention brings is multiplied by gamma, which is 0
    assert generator.middle.gamma == 0 and torch.equal(
        generator.middle(tokens["sagan"]).output, tokens["sagan"]
    )
    detr, canvas = Detr().eval(), torch.randn(B, 1, SIZE, SIZE)
    found = detr(canvas, weights=True)
    cells = detr.stem(canvas)
    assert cells.shape[-2:].numel() == found.weights.shape[-1] == 36 < SIZE**2
    assert found.weights.shape[-2] == found.boxes.shape[1] == 5
    assert any(isinstance(layer, nn.Conv2d) for layer in detr.stem)
    # both run small: gamma has left 0, and nine of ten objects are found, in every stored run
    sagan = [
        row for row in results("sagan")["rows"] if row["kind"] == "system" and row["middle"] == "attention"
    ]
    assert len(sagan) == 6 and min(abs(row["reports"][-1]["gamma generator"]) for row in sagan) > 0.01
    recall = [row["test"]["recall"] for row in results("detr")["rows"] if row["system"] == "DETR"]
    assert len(recall) == 3 and min(recall) > 0.9


def test_cnn_6():
    """A number begins with the year and the month of its first version; the paper is of 2019, and of no
    August."""
    (paper,) = [m for m in MILESTONES if "Cordonnier" in m.source]
    assert (paper.year, paper.name) == (2019, "Convolution as attention")
    number = paper.source.rsplit("arXiv:", 1)[1]
    assert number == "1911.03584"
    dates = {n: (2000 + int(n[:2]), int(n[2:4])) for n in (number, "2008.02445")}
    assert dates == {number: (2019, 11), "2008.02445": (2020, 8)}


def test_cnn_1_absolute_sinusoids_with_a_rotation_between_them_do_as_well():
    codes = sinusoidal(W + 2, 64, dtype=torch.float64)
    d = torch.arange(W + 2) - torch.arange(W + 2)[:, None]  # along one axis; the other adds its own cosines
    for c in (-1, 0, 1):
        scores = codes @ rotation(c, 64, dtype=torch.float64).mT @ codes.mT
        clocks = frequencies(64)
        assert_close(scores, ((d - c)[..., None] * clocks).cos().sum(-1))
        inside = slice(1, -1)  # queries that have both neighbours
        assert (30 * scores).softmax(-1)[inside][(d == c)[inside]].min() > 1 - 1e-12


def test_cnn_7():
    """One fixed shuffling of the pixels: an MLP can have the same outputs with its columns shuffled, a
    convolution with no kernel."""
    h, w, order = 6, 6, torch.randperm(36)
    x = torch.randn(40, 1, h, w, dtype=torch.float64)
    shuffled = x.flatten(2)[..., order].view_as(x)
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(h * w, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    expected = mlp(x)
    with torch.no_grad():
        mlp[1].weight.copy_(mlp[1].weight[:, order])
    assert_close(mlp(shuffled), expected)
    layer = conv(c_in=1, c_out=1, bias=False).double()
    wanted = layer(x).flatten()

    def error_of_the_best_kernel(pictures):
        windows = F.unfold(pictures, 3, padding=1).mT.flatten(0, 1)  # (b · n, 9): what each pixel sees
        kernel = torch.linalg.lstsq(windows, wanted[:, None]).solution
        return ((windows @ kernel)[:, 0] - wanted).norm() / wanted.norm()

    assert error_of_the_best_kernel(x) < 1e-10
    assert error_of_the_best_kernel(shuffled) > 0.7
    # it keeps rows and columns, and takes no long vector
    assert layer(x).shape == x.shape
    with pytest.raises(RuntimeError):
        layer(x.flatten(1))


def test_cnn_8():
    tokens = as_tokens(torch.rand(1, 3, 5, 10))[0]
    weights = attend(tokens, tokens, tokens).weights
    assert weights.shape == (50, 50) and weights.diagonal().min() > 0
    # a kernel's middle tap IS the pixel itself: without its own key a pixel could not keep what it is
    point = conv(1, 3, 3, bias=False)
    own = as_attention(point).heads(torch.zeros(1, 3, 5, 10), weights=True).weights[0, 0]
    assert_close(own, torch.eye(50))
    others = attend(tokens, tokens, tokens, mask=~torch.eye(50, dtype=torch.bool))
    assert others.weights.diagonal().max() == 0
    values = tokens.clone().requires_grad_()
    attend(tokens, tokens, values, mask=~torch.eye(50, dtype=torch.bool)).output[7].sum().backward()
    assert values.grad[7].count_nonzero() == 0 and values.grad[8].count_nonzero() == 3


def test_cnn_9():
    with torch.device("meta"):
        picture = torch.empty(1, 3, 224, 224)
        patches = nn.Conv2d(3, 768, 16, stride=16)(picture)  # ViT-Base: 16 x 16 pixels, 768 numbers
        blocks = nn.Conv2d(3, 768, 14, stride=14)(picture)  # 16 x 16 of them, if that were meant
    assert patches.shape[-2:] == (14, 14) and patches.flatten(2).shape[-1] == 196
    assert blocks.shape[-2:] == (16, 16) and blocks.flatten(2).shape[-1] == 256
    assert patchify(torch.zeros(1, 3, 224, 224), 16).shape == (1, 196, 16 * 16 * 3)
    # the number of tokens follows from the picture
    assert [(side // 16) ** 2 for side in (224, 384)] == [196, 576]


def test_cnn_10():
    """Least squares on pictures made by a rule. Nine free numbers or 36 · 36; the right nine, or nine others.

    Where the rule is a convolution, one picture gives the convolution its kernel, and a free matrix needs one
    for each pixel. Where the pixels were shuffled first, the free matrix needs no more than before, and the
    convolution stays wrong, whatever it is given. As few numbers, tied over other places than the rule's:
    wrong with any amount.
    """
    side, test = 6, torch.randn(500, 1, 6, 6, dtype=torch.float64)
    order = torch.randperm(side**2)
    rule = conv(c_in=1, c_out=1, bias=False).double()

    def shuffle(x):
        return x.flatten(2)[..., order].view_as(x)

    def tied(x):
        return F.unfold(x, 3, padding=1).mT.flatten(0, 1)

    def errors(n, made):
        """Relative errors on test pictures of a convolution and of a free matrix, learned from n pictures."""
        x = torch.randn(n, 1, side, side, dtype=torch.float64)
        y, expected = (made(pictures).detach().flatten(1) for pictures in (x, test))
        kernel = torch.linalg.pinv(tied(x)) @ y.reshape(-1, 1)
        matrix = torch.linalg.pinv(x.flatten(1)) @ y
        guesses = (tied(test) @ kernel).view_as(expected), test.flatten(1) @ matrix
        return [((guess - expected).norm() / expected.norm()).item() for guess in guesses]

    # the bias fits
    right = {n: errors(n, rule) for n in (1, 12, 36)}
    assert max(convolution for convolution, _ in right.values()) < 1e-9
    assert right[1][1] > 0.9 and right[12][1] > 0.7 and right[36][1] < 1e-6
    # it does not: the same nine numbers are of no use, with 36 pictures or 1,000
    wrong = {n: errors(n, lambda x: rule(shuffle(x))) for n in (12, 36, 1000)}
    assert wrong[36][0] > 0.7 and wrong[1000][0] > 0.7
    assert wrong[12][1] > 0.7 and wrong[36][1] < 1e-6
    # and trained ones: the convolutional network gains from more canvases too, in every seed, by less and
    # less
    found = points("digit")
    for some, more, most in zip(*(found["cnn", n] for n in (1000, 5000, 25_000)), strict=True):
        assert more - some > most - more > 0
    # the more flexible one contains the other: the same function, with three more numbers for each head
    layer, x = conv(), torch.randn(1, C, H, W)
    heads = as_attention(layer)
    assert_close(heads(x), layer(x), atol=1e-4, rtol=0)
    assert heads.values.numel() == layer.weight.numel()
