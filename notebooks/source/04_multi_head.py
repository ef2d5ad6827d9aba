# %% [markdown]
r"""
{title}

*The animal did not cross the street because it was too tired.* What was too tired? Now end it with *wide*: one word has changed, and *it* is another thing. How
can attention know?

**Afterwards you can** prove what one head cannot do; write multi-head attention; find the head that resolves *it*, and test it.

{about}

<details><summary>中文摘要 · Chinese</summary>
一个头只给出一个加权平均:两个线性读出只能把一条直线切成三段,而四个句子需要四种答案。两个头各有自己的权重,就能同时回答“谁在做”和“it 指什么”。
找到负责 it 的头之后,用手移动它的权重,答案随之改变;移动另一个头则不变。torch 的多头层里 True 表示“隐藏”,与本课相反。
</details>

{sources}
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import figures
from lesson_lib.chapters.c04_multi_head import pronouns as language
from lesson_lib.chapters.c04_multi_head.experiments import two_questions
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick, to_device
from lesson_lib.heads import MultiHeadAttention, merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.show import show, show_source
from lesson_lib.widgets.heads import HeadExplorer

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
We ask two questions. *Who acted?* The first noun. *What is it?* The noun that the last word fits. (Here a street may cross an animal.)
"""

# %%
lines = [
    f"the {one} did not cross the {other} because it was too {last}"
    for one, other in (("animal", "street"), ("street", "animal"))
    for last in ("tired", "wide")
]
for line in lines:
    acted, it = line.split()[1], "animal" if "tired" in line else "street"
    print("...".join(line.split()[k] for k in (1, 6, 11)), "->", acted, it)

# %% [markdown]
r"""
The same two nouns, four different pairs of answers.

## 1 · One head cannot

A **head** is one attention. Let the last word ask and the two nouns answer. The head gives *animal* the weight $p$, and *street* the rest; $p$ may differ from sentence to sentence:

$$z = p\, v_{\text{animal}} + (1-p)\, v_{\text{street}}$$

Each question has a **linear read-out**: a matrix and a bias that turn $z$ into a score for each noun. The largest score is the answer.
"""

# %%
predict("four_pairs")

# %% [markdown]
r"""
As $p$ grows, $z$ moves along a straight line. So a linear read-out's score of *animal* minus its score of *street* is $\alpha p + \beta$, which changes sign at most once: a
read-out is a cut. Move both cuts:
"""

# %%
figures.pieces(acted=0.3, it=0.6)

# %% [markdown]
r"""
Two cuts make three pieces. Here *street, animal* has none; with other cuts another pair has none. One head gets three of the four at most.

The proof needs this: read-outs are linear and see only $z$; values tell the word, not its place; only the two nouns are mixed.

## 2 · Two heads

So let the last word ask twice, with weights $p_0$ and $p_1$: a point in a square. Each question cuts an axis of its own, and the corners are four pairs. Each head $i$ has matrices of its own, hence its own weights and mixture. The mixtures are laid side by side, and a matrix $W_o$ mixes them:

$$\text{head}_i = \operatorname{attend}(x W_q^i,\; x W_k^i,\; x W_v^i) \qquad \text{output} = [\text{head}_0, \text{head}_1, \dots]\; W_o$$

Heads are like the channels of a picture: several views of one thing. One product computes all heads' queries, $(b, n, h \cdot d)$ for $h$ heads of width $d$, and is
then cut.
"""

# %% [markdown] tags=["exercise:heads_apart"]
# Give each head a table of its own: from $(\ldots, n, h d)$ to $(\ldots, h, n, d)$.

# %%
predict("view_alone")

# %%
whole = 10.0 * torch.arange(3)[:, None] + torch.arange(4)
figures.split_wrongly(split_heads(whole, n_heads=2), whole.view(2, 3, 2))

# %% [markdown]
r"""
The right head 0 has the left half of each token. The third table has token 0 in two halves, and no error was raised. So cut first, to $(n, h, d)$, then swap $n$ and $h$. On the way back swap first,
then join.
"""

# %% [markdown] tags=["exercise:several_heads"]
# Write the rest: from projected queries, keys and values to the layer's output.

# %% [markdown]
r"""
In the library:
"""

# %%
x = torch.randn(2, 5, 12)  # (b, n, d_model)
layer = MultiHeadAttention(d_model=12, n_heads=3)
projections = layer.w_query, layer.w_key, layer.w_value
q, k, v = (split_heads(project(x), 3) for project in projections)
heads = attend(q, k, v).output  # (b, h, n, d) = (2, 3, 5, 4)
assert_close(layer.w_output(merge_heads(heads)), layer(x, x, x).output)

w_o = layer.w_output.weight.T.view(3, 4, 12)  # four rows for each head
added = sum(heads[:, i] @ w_o[i] for i in range(3))
assert_close(added, layer(x, x, x).output)

# %% [markdown]
r"""
The last lines cut $W_o$ into a block per head. The output is a *sum*: each head writes into all twelve columns.

**"More heads cost more."**
"""

# %%
words = torch.randn(1, 100, 512)
for h in (1, 8):
    wide = MultiHeadAttention(d_model=512, n_heads=h)  # of width 512 / h
    learned = sum(p.numel() for p in wide.parameters())
    weights = wide(words, words, words).weights.numel()
    print(f"{h} heads: {learned:,} learned, {weights:,} weights")

# %% [markdown]
r"""
Heads that share the width of 512 share its $4 \cdot 512^2$ learned numbers. Only the tables of weights, $100 \cdot 100$ each, are more.

## 3 · Train it

The language has 24 nouns: animals, ways, foods, cases; each fits other last words. A third of them never stands with *it*, only in sentences like the second, with the same two questions:
"""

# %%
for family in ("it", "others"):
    words, answers = language.sentences(family)
    print(language.text(words[0]))
show_source(two_questions.TwoQuestions)

# %% [markdown]
r"""
`Embedding` holds a learned row for each word, or place (chapter 05). Keys know their place, to tell which noun is first. Values do not, and the mask hides small words: the
proof's conditions. Each model trains on both answers at once:
"""

# %%
one, _ = two_questions.train("1 head")
two, _ = two_questions.train("2 heads")
shares = {
    "1 head": two_questions.right(one, "trained")["both"],
    "2 heads": two_questions.right(two, "trained")["both"],
    "2 heads,\nall new": two_questions.right(two, "both new")["both"],
}
one_head, *two_heads = shares.values()
figures.both_right(shares, bound=3 / 4)

# %% tags=["proof"]
assert one_head <= 3 / 4 and (quick() or min(two_heads) > 0.97)

# %% [markdown]
r"""
One head stays below three of four. Two heads answer nearly always, in new patterns, too, with nouns never seen beside *it*.

## 4 · What does *it* refer to?

The first two sentences differ in the last word. Move the query from *tired* to *wide*:
"""

# %% tags=["nbval-ignore-output"]
sentence = to_device(language.read(*lines))
with torch.no_grad():
    weights = two(sentence).weights  # (4, 2, 1, 11): one query, 11 words
finder = two_questions.it_head(two)  # most of its weight is on what is it
names = {finder: "what is it?", 1 - finder: "who acted?"}
HeadExplorer(
    weights[:2, :, 0].transpose(0, 1).cpu(),
    ["tired", "wide"],
    [names[0], names[1]],
    keys=lines[0].split()[:-1],
)

# %% [markdown]
r"""
One head stays at the first noun. In the other the bright cell walks from *animal* to *street*. Is that why the answer changes?
"""

# %%
predict("by_hand")

# %%
one_noun, other_noun = two_questions.nouns_of(sentence)  # the places of the two nouns
# swapped: the two nouns exchange their weights in one head; say: answer with weights
changes = {
    "as it is": weights,
    "moved": two_questions.swapped(weights, finder, one_noun, other_noun),
    "other head": two_questions.swapped(weights, 1 - finder, one_noun, other_noun),
}
said = {}
for change, changed in changes.items():
    scores = two_questions.say(two, sentence, weights=changed)
    said[change] = language.text(scores[0].argmax(-1))

# %% tags=["proof"]
expected = ["animal animal", "animal street", "street animal"]
bright = weights[:2, [1 - finder, finder], 0].argmax(-1).tolist()
assert quick() or list(said.values()) == expected
assert quick() or bright == [[1, 1], [1, 6]]  # animal is word 1, street 6

# %% tags=["nbval-ignore-output"]
for change, answers in said.items():
    print(f"{change:12}{answers}")

# %%
figures.followed(two_questions.followed(two, "new words"))

# %% [markdown]
r"""
The answer follows the weight, in 99 sentences of 100 or more. It hardly does where a weight moves to a small word, or in the other head.

**"The word it looks for its noun."** Here the last word asks. Why not *it*?
"""

# %%
predict("who_asks")

# %%
before = sentence[:2, :-1]
placed = two.word(before) + two.place.weight
it, nouns = placed[:, 8:9], language.is_noun(before)[:, None]
asked = two.attention(it, placed, placed, mask=nouns).weights[:, finder, 0]
assert torch.equal(asked[0], asked[1])

# %% tags=["nbval-ignore-output"]
for last, row in zip(("tired", "wide"), asked[:, [1, 6]].tolist(), strict=True):
    print(
        f"{last:6} animal {row[0]:.2f}  street {row[1]:.2f}"
    )  # by chance: never trained

# %%
figures.askers()

# %% [markdown]
r"""
Both rows are the same. In one layer *it* asks before it has read the last word: trained so, it is right half of the time. With two layers *it* first reads all words, the last one too, then
asks.

## In real work

torch's layer is `nn.MultiheadAttention`.
"""

# %%
predict("torch_says")

# %%
theirs = nn.MultiheadAttention(24, 3, batch_first=True)
batch, filler = torch.randn(2, 7, 24), torch.zeros(2, 7, dtype=torch.bool)
filler[1, 5:] = True  # the second sentence has five words
output, mean = theirs(
    batch, batch, batch, attn_mask=~causal(7), key_padding_mask=filler
)  # True hides
ours = MultiHeadAttention.from_torch(theirs)(
    batch, batch, batch, mask=causal(7) & ~filler[:, None]
)
assert_close(ours.output, output)
assert_close(ours.weights.mean(1), mean)  # torch gives the MEAN over heads

wrong = theirs(batch, batch, batch, attn_mask=causal(7))[0]
print("words that become nan:", wrong[0].isnan().any(-1).int().tolist())

# %% [markdown]
r"""
Word 6 has no future: all its scores are $-\infty$, its weights nan. The other rows are wrong, too, and look healthy. Another bug: a mask $(b, n, n)$ needs `unsqueeze(1)` beside scores $(b, h, n, n)$. A causal one, $(n, n)$, does not: its
rows become heads:
"""

# %%
scores = torch.zeros(2, 4, 4, 4)  # lists, heads, queries, keys
hidden = ~causal(4).unsqueeze(1)
leak = scores.masked_fill(hidden, -torch.inf).softmax(-1)[0, :, 0, 1:].sum(-1)
show(future_seen_by_word_0=leak)

# %% [markdown]
r"""
In head 3 word 0 gives the future 75 %. Today's heads are mostly 64 to 128 wide, and share keys (chapter 11).

## The sentence once more

The last word asked, and one head looked at the noun that it fits. Try another:
"""

# %% tags=["nbval-ignore-output"]
mine = "the horse did not cross the bridge because it was too long"
scores = two(to_device(language.read(mine))).scores
print(language.text(scores[0].argmax(-1)))  # who acted, what is it

# %% [markdown]
r"""

**To remember.** One head gives one mixture: two linear read-outs reach three of four pairs.

- Two cuts, three pieces, four pairs.
- Project, split, attend, merge, project; cut before you swap, swap before you join.
- At equal width, more heads cost only tables of weights.
- To test a head, move its weights.
- torch's layer: True hides.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2; the sentence is Uszkoreit's (2017), after Winograd (1972). Seeds, a head that cheats, claims:
[evidence](evidence/04_multi_head_evidence.ipynb).

**Next**: [05a · Order](05a_order.ipynb): how does a head know which noun came first?
"""
