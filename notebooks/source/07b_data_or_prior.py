# %% [markdown]
r"""
{title}

Take six canvases with two shapes each. You see at once whether both are of one kind. A Vision Transformer, the ViT, and a convolutional network, the CNN, must learn it from examples. How many does each need, and why?

**Afterwards you can** write a ViT; say what a CNN assumes; read learning curves, right answers over training pictures, without being fooled.

{about}

<details><summary>中文摘要 · Chinese</summary>
ViT 把图片切成小块,每块一个词元,前面再放一个类别词元,答案从它读出。CNN 在看到任何图片之前就有一些假定,这叫先验。
它们各需要多少图片?两条学习曲线相交,你该先问什么?先验不合规律时会怎样?
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.blocks import Encoder
from lesson_lib.chapters.c07_attention_vs_cnn import figures
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit as seeing
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.positions import Learned
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %%
shapes, same = seeing.draw("pair", 6, torch.Generator().manual_seed(24), "test")
names = ("different", "same")
labels = [names[k] for k in same.tolist()]
figures.scenes(shapes[:, 0], labels)

# %% [markdown]
r"""
`shapes` is $(6, 1, 20, 20)$: six canvases with one channel. On each lie two shapes, squares or crosses, on noise.

## 1 · Patches

Pixels as tokens are expensive: the table of weights has a row and a column for each. So the ViT makes tokens of squares, the **patches**.
"""

# %%
predict("patch_table")

# %% [markdown] tags=["exercise:cut_patches"]
# Cut a grey picture.

# %% [markdown]
r"""
A matrix brings each patch to the model's width. **"A ViT has no convolution in it."** Cut, then multiply: that is a convolution whose step, the **stride**, is a whole patch. Both give the same, says the assertion:
"""

# %%
strided = nn.Conv2d(1, 64, kernel_size=5, stride=5)
cut = yours("cut_patches")  # ours, until yours has passed
rows = [cut(canvas, side=5) for canvas in shapes[:, 0]]
rows = torch.stack(rows)  # (6, 16, 25): 16 patches of 25 pixels
by_matrix = rows @ strided.weight.flatten(1).T + strided.bias  # (6, 16, 64)
assert_close(by_matrix, strided(shapes).flatten(2).mT)

# %% [markdown]
r"""
## 2 · One token more

Who speaks for the picture? A learned vector that stands for no patch, the **class token**. It goes in front, looks at the patches, and the answer is read from it.
"""

# %%
figures.class_token_path(shapes[0, 0], patch=5)

# %% [markdown] tags=["exercise:class_answer"]
# One layer of it, without projections, with the usual score of `attend`.

# %%
token, shuffled = torch.randn(64), by_matrix[:, torch.randperm(16)]
answer_of = yours("class_answer")
answer = answer_of(by_matrix, token)  # (6, 64)
assert_close(answer_of(shuffled, token), answer)

# %% [markdown]
r"""
Shuffle the patches, and the answer stays: attention knows no places. So the ViT adds learned position codes, `Learned` (part 05c). Its `Encoder` has two layers (part 06a), norms first, with four heads and 128 hidden numbers; `gelu` is a smooth ReLU. Row 0 of its `.output` is the class token's.
"""


# %%
class SmallViT(nn.Module):
    def __init__(self, d_model=64, classes=2):
        super().__init__()
        self.patches = nn.Conv2d(1, d_model, kernel_size=5, stride=5)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = Learned(17, d_model)
        self.encoder = Encoder(
            2, d_model, 4, 128, dropout=0.0, norm_first=True, activation=F.gelu
        )
        self.classify = nn.Linear(d_model, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).mT  # (b, 16, 64)
        first = self.class_token.expand(len(x), 1, -1)
        x = torch.cat([first, x], dim=1) + self.positions(17)  # (b, 17, 64)
        return self.classify(self.encoder(x).output[:, 0])  # (b, classes)


# %% [markdown]
r"""
And the CNN. After each convolution `BatchNorm2d` brings a channel, over batch and places, to mean 0 and deviation 1 (behind `.eval()` by averages kept from training), then applies a learned scale and shift. `MaxPool2d` keeps the largest of $2 \times 2$ neighbours: after two layers 20 pixels have become 5. At the end stands the mean over all places.
"""


# %%
class SmallCNN(nn.Module):
    def __init__(self, channels=(1, 8, 32, 64, 84), classes=2):
        super().__init__()
        layers = []
        for i in range(4):
            conv = nn.Conv2d(channels[i], channels[i + 1], 3, padding=1, bias=False)
            layers += [conv, nn.BatchNorm2d(channels[i + 1]), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] * (i < 2)
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(channels[-1], classes)

    def forward(self, x):
        return self.classify(self.layers(x).mean((-2, -1)))


for ours, name in ((SmallViT(), "vit"), (SmallCNN(), "cnn")):
    theirs = seeing.start(name, "pair", seed=0)  # what we train below
    ours.load_state_dict(theirs.state_dict())
    assert_close(ours.eval()(shapes), theirs(to_device(shapes)).cpu())
    print(f"{name}: {sum(p.numel() for p in ours.parameters()):,} numbers")

# %% [markdown]
r"""
Their sizes are within 1%. They differ in what they assume before any picture: the **prior**, or **inductive bias**. The CNN has locality and weight sharing (part 07a), and its mean forgets where something was. A mean can count crosses; *same* means 0 or 2, *different* 1, and a linear layer cannot tell that. But in the last two convolutions a place sees 18 and 26 pixels across, so both shapes. The ViT has a code for each place; nothing tells it that places do not matter here.

## 3 · A thousand pictures

The ViT gets 800 steps of 64 pictures (`"long"`), the CNN only 200 (`"short"`).
"""

# %%
predict("thousand_pairs")

# %% tags=["trained"]
trained = {"CNN": seeing.train("cnn", "pair", 1000, budget="short")[0]}
with stored():  # reads what this training left before
    trained["ViT"], _ = seeing.train("vit", "pair", 1000, budget="long")
known = to_device(seeing.training("pair", 1000, seed=0))
new = seeing.held_out("pair", "test")
shares = {
    f"{name}, {what}": seeing.accuracy(model, *some)
    for what, some in (("known", known), ("new", new))
    for name, model in trained.items()
}
figures.shares_right(shares, guess=0.5)

# %% tags=["proof"]
assert quick() or min(shares["CNN, known"], shares["ViT, known"]) > 0.97
assert quick() or shares["CNN, new"] > shares["ViT, new"] + 0.1

# %% [markdown]
r"""
Both know their own pictures. On new ones the CNN is right in 99 of 100 or more, the ViT in about seven of ten. The ViT has learned these thousand pictures, not the rule: **overfitting**. Two boxes of 7 pixels, at least a pixel apart, can lie in 7,350 ways; a thousand pictures show at most 1,000. Are the codes to blame? In stored runs of three seeds a ViT without them is right in 95 to 98 of 100, with them in some 70 to 92.

## 4 · And with more pictures?

A famous figure says: with few pictures the CNN is ahead, with many the Transformer. Here is one from another task, to name a digit: up to 25,000 placements of 1,197 handwritten ones.
"""

# %%
figures.crossing()

# %%
predict("two_curves")

# %% [markdown]
r"""
With their steps:
"""

# %%
figures.uncovered()

# %% [markdown]
r"""
**"With enough data the Transformer overtakes."** We made that crossing: the CNN was stopped after 50 steps, the ViT after 800. In 50 steps of 64 the CNN drew 3,200 pictures; of 25,000 it never saw most. The axis shows what was available, not what was seen. With digits the CNN of 200 steps is above the ViT of 800 everywhere, 0.95 against 0.83 at the right end.

**"The ViT cannot compare two shapes, and more data do not help."** So says its curve of 200 steps: 0.51 at 25,000 pairs. After 800 the same ViT has 0.99. **Such a curve measures patience.**

In one paper a ViT overtakes a CNN between 9 and 90 million photographs. That experiment's smallest set is 360 times our largest: our curves say nothing about it. Later CNNs, with as much computing and 4 billion photographs, match ViTs.

## 5 · What a prior is worth

Here nothing depends on patience: least squares (`pinv`) finds the best numbers at once, and where many fit, the smallest. The rule is a hidden $3 \times 3$ convolution of pictures of $6 \times 6$. Two learners: a kernel of nine numbers, the right prior, and a matrix of $36 \times 36$, which may tie any pixel to any other. How much does each miss? 0% is exact, 100% as bad as answering 0.
"""


# %%
def missed(n, rule, order):
    """What n pictures did not teach: the best kernel, the best matrix."""
    x = torch.randn(n + 500, 36, dtype=torch.float64)
    y = rule(x[:, order].view(-1, 1, 6, 6)).flatten(1)
    seen = F.unfold(x.view(-1, 1, 6, 6), 3, padding=1).mT  # nine pixels for each place
    kernel = torch.linalg.pinv(seen[:n].flatten(0, 1)) @ y[:n].reshape(-1, 1)
    matrix = torch.linalg.pinv(x[:n]) @ y[:n]
    for guess in ((seen[n:] @ kernel)[..., 0], x[n:] @ matrix):  # 500 new pictures
        yield ((guess - y[n:]).norm() / y[n:].norm()).item()


rule = nn.Conv2d(1, 1, 3, padding=1, bias=False).double().requires_grad_(False)
for n in (1, 12, 36):
    kernel, matrix = missed(n, rule, torch.arange(36))
    print(f"{n:2} pictures: kernel {kernel:.0%}, matrix {matrix:.0%}")

# %% [markdown]
r"""
One picture gives the kernel 36 equations for nine unknowns. It gives each column of the matrix one equation for 36 unknowns, so the matrix needs 36 pictures. Twelve leave 24 of 36 directions open: expect a miss of about $\sqrt{24/36}$, 82%. What do you expect of 24? Change the loop.
"""

# %%
predict("shuffled_rule")

# %%
shuffle = torch.randperm(36)
for n in (36, 1000):
    kernel, matrix = missed(n, rule, shuffle)
    print(f"{n:4} pictures: kernel {kernel:.0%}, matrix {matrix:.0%}")

# %% [markdown]
r"""
**"The more flexible model needs more data."** With the true prior it did, 36 times as many. With the false one it alone arrives: the matrix still needs 36, the kernel after 1,000 misses «100»%.

## In real work

A layer of torch's own reads two pictures. We replace picture 1; what changes in picture 0?
"""

# %%
tokens = torch.randn(2, 17, 64)
changed = torch.cat([tokens[:1], torch.randn(1, 17, 64)])  # only picture 1
for first in (True, False):
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=first).eval()
    leak = (layer(changed)[0] - layer(tokens)[0]).abs().max()
    assert (leak > 0.1) != first
    print(f"batch_first={first}: up to {leak:.1f}")

# %% [markdown]
r"""
By default torch takes the first axis for tokens: a patch looks at itself and at the same patch of the other picture, never at its neighbours.

## The shapes once more
"""

# %%
said = {
    name: [names[k] for k in model(to_device(shapes)).argmax(-1).tolist()]
    for name, model in trained.items()
}
figures.judged(shapes[:, 0], labels, said)

# %% [markdown]
r"""
Wrong answers are orange. How many pictures does each need? Of the numbers tried, the CNN needs 1,000 for at least 99 right in 100, the ViT 5,000 and four times the steps: its codes tell places apart, and it must learn not to.

**To remember.** Before you believe a crossing, ask whether more steps would undo it.

- Patches times a matrix: a convolution with a stride.
- The class token joins the patches, in front by custom, and is read.
- A prior is worth data where it is true: one picture against 36.
- Where it is false and cannot bend, data do not help.

**Sources.** Dosovitskiy et al. 2020 (arXiv:2010.11929), section 4.3; Smith et al. 2023 (arXiv:2310.16764). Rates, seeds, claims: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [07c · Reach](07c_reach.ipynb).
"""
