"""Attention over pictures in plain torch: one file to copy into a project. MIT licence.

    patches             (b, c, h, w) -> (b, n, c · side · side): squares as tokens, row by row
    Attention           over tokens or pixels of a grid; with a learned number for each offset, if you like
    ViT                 patches, layers, and an answer from a class token or from the mean
    pixels              a table of attention over all pixels: each of (b, c, h, w) is a token
    convolve            a convolution built of heads: each looks at one neighbour
    python vision.py    trains a ViT on handwritten digits (scikit-learn has them), and prints what it reads
"""

import torch
import torch.nn.functional as F
from torch import nn


def patches(images, side):
    """Tokens (b, n, c · side · side) of images (b, c, h, w): patch by patch in reading order.

    A matrix on them is a convolution with kernel and stride `side`: nn.Conv2d(c, d, side, stride=side) has
    weight.flatten(1) as that matrix.
    """
    if images.shape[-2] % side or images.shape[-1] % side:
        raise ValueError(f"{tuple(images.shape[-2:])} cannot be cut into squares of {side}; pad, or crop")
    return F.unfold(images, side, stride=side).mT


def offsets(height, width):
    """The number (n, n) of the offset of each pair of a grid's n = height · width cells, query by key.

    There are (2 height - 1) (2 width - 1) offsets; the middle one is a cell to itself.
    """
    rows, columns = torch.arange(height), torch.arange(width)
    cells = torch.cartesian_prod(rows, columns)
    down, right = (cells - cells[:, None]).unbind(-1)  # from query to key
    return (down + height - 1) * (2 * width - 1) + right + width - 1


class Attention(nn.Module):
    """Self-attention (b, n, d) -> (b, n, d). With `grid` (height, width) the last height · width tokens are
    its cells, and a score gets a learned number for their offset (as in Swin); tokens before them, such as a
    class token, get none. Torch's function is used, and the table of weights is never kept."""

    def __init__(self, d, n_heads, grid=None):
        super().__init__()
        if d % n_heads:
            raise ValueError(f"a width of {d} cannot be split into {n_heads} heads")
        self.n_heads, self.by_offset = n_heads, None
        self.w_qkv, self.w_output = nn.Linear(d, 3 * d), nn.Linear(d, d)
        if grid is not None:
            numbers = offsets(*grid)
            self.register_buffer("numbers", numbers, persistent=False)
            self.by_offset = nn.Parameter(torch.zeros(n_heads, int(numbers.max()) + 1))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.w_qkv(x).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)  # (b, heads, n, .)
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(n))
        return self.w_output(output.transpose(1, 2).flatten(-2))

    def bias(self, n):
        """What is added to the scores, (heads, n, n), or None."""
        if self.by_offset is None:
            return None
        before = n - len(self.numbers)  # tokens that stand in no cell
        return F.pad(self.by_offset[:, self.numbers], (before, 0, before, 0))


class Layer(nn.Module):
    """Attention, then a network for each token; pre-norm: x + sub-layer(norm(x))."""

    def __init__(self, d, n_heads, grid=None):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.attention = Attention(d, n_heads, grid)
        self.feed_forward = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class ViT(nn.Module):
    """Logits (b, classes) of images (b, channels, size, size): Dosovitskiy et al. 2020.

    `pool`: "class" reads a learned token that stands before the patches, "mean" their mean. `positions`:
    "learned" adds a row to each token, "offsets" gives scores a number for each offset, "none" leaves the
    patches without order.
    """

    def __init__(self, size, side, classes, channels=1, d=64, n_heads=4, n_layers=2,
                 pool="class", positions="learned"):
        super().__init__()
        if pool not in ("class", "mean") or positions not in ("learned", "offsets", "none"):
            raise ValueError('pool is "class" or "mean", positions "learned", "offsets" or "none"')
        self.side, cells = side, size // side
        self.embed = nn.Linear(channels * side * side, d)
        self.first = nn.Parameter(torch.zeros(1, 1, d)) if pool == "class" else None
        count = cells * cells + (pool == "class")
        self.codes = nn.Parameter(torch.randn(count, d) * 0.02) if positions == "learned" else None
        grid = (cells, cells) if positions == "offsets" else None
        self.layers = nn.ModuleList(Layer(d, n_heads, grid) for _ in range(n_layers))
        self.norm, self.read = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, images):
        x = self.embed(patches(images, self.side))
        if self.first is not None:
            x = torch.cat((self.first.expand(len(x), -1, -1), x), 1)
        if self.codes is not None:
            x = x + self.codes
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.read(x.mean(1) if self.first is None else x[:, 0])


def pixels(attention, images):
    """`attention` over all pixels: (b, d, h, w) -> (b, d, h, w). The table has (h · w)² weights a head."""
    b, d, h, w = images.shape
    return attention(images.flatten(2).mT).mT.reshape(b, d, h, w)


def convolve(images, kernel, sharpness=40.0):
    """F.conv2d(images, kernel, padding=k // 2) by attention, a head for each tap: Cordonnier et al. 2019.

    A head's score is -sharpness · distance² of the key from the place at which the head looks, so a sharp
    head puts all its weight there; its value matrix is the tap (c_out, c_in). Keys stand on a canvas with a
    border of zeros, since weights sum to 1 and cannot give a row of zeros themselves.
    images (b, c_in, h, w), kernel (c_out, c_in, k, k) with an odd k.
    """
    (h, w), k = images.shape[-2:], kernel.shape[-1]
    r = k // 2
    canvas = F.pad(images, (r, r, r, r)).flatten(2).mT  # (b, m, c_in)
    lines = {"dtype": images.dtype, "device": images.device}
    cells = torch.cartesian_prod(torch.arange(h, **lines), torch.arange(w, **lines))
    keys = torch.cartesian_prod(torch.arange(-r, h + r, **lines), torch.arange(-r, w + r, **lines))
    output = 0
    for row in range(k):
        for column in range(k):
            place = cells + torch.tensor([row - r, column - r], **lines)  # where this head looks
            scores = -sharpness * (keys - place[:, None]).square().sum(-1)  # (h · w, m)
            output = output + scores.softmax(-1) @ canvas @ kernel[:, :, row, column].T
    return output.mT.reshape(len(images), -1, h, w)


def train(model, images, labels, steps, lr=3e-3, batch=64, seed=0):
    """Cross-entropy, Adam, a learning rate that rises for a tenth of the steps and falls to 0."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    shape = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        rows = torch.randint(len(labels), (batch,), generator=generator).to(labels.device)
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        shape.step()
    return model


if __name__ == "__main__":
    from sklearn.datasets import load_digits

    data = load_digits()  # 1,797 pictures of 8 by 8 pixels, with brightness 0 to 16
    images, labels = torch.tensor(data.images).float()[:, None] / 16, torch.tensor(data.target)
    for pool, positions in (("class", "learned"), ("mean", "learned"), ("mean", "offsets")):
        torch.manual_seed(0)
        model = ViT(8, 2, 10, pool=pool, positions=positions)
        train(model, images[:1300], labels[:1300], steps=300)
        with torch.no_grad():
            right = (model(images[1300:]).argmax(-1) == labels[1300:]).float().mean()
        print(f"read from the {pool:5}, positions {positions:7}: {right:.2f} of unseen digits right")
    kernel = torch.randn(5, 3, 3, 3)
    picture = torch.randn(2, 3, 8, 7)
    wrong = (convolve(picture, kernel) - F.conv2d(picture, kernel, padding=1)).abs().max()
    print(f"a convolution built of nine heads is off by {wrong:.4f}")
