# %% [markdown]
r"""
# 10a · What if we know who is connected?

A karate club of 34 quarrelled and split in two. Members 0 and 33 led the two camps. Of the others we know only whom each met outside the club. Look at the picture: whom did member 11 follow, and whom member 8?

**Afterwards you can** attend along a list of edges; say where the 0 of a stranger belongs; build and train a graph attention network.

**Time** about 45 minutes. **You need** parts [03](03_matrix_form.ipynb), [04](04_multi_head.ipynb) and [06b](06b_translator.ipynb). **Exercises**: [exercises/10_graph_attention](exercises/10_graph_attention.ipynb).

<details><summary>中文摘要</summary>
一个空手道俱乐部分裂成两派,我们只知道谁和谁有来往。这一课沿着图的边传递消息:先看固定的权重(GCN),再亲手写出沿边的注意力和 GAT 的分数,弄清“分数为 0”为什么不是“权重为 0”。最后用两个已知的标签训练网络,并说明不看边的注意力为什么连这两个标签都学不会。
</details>
"""

# %%
import networkx
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention import camps_figures, graphs
from lesson_lib.chapters.c10_graph_attention import graphs_figures as drawing
from lesson_lib.chapters.c10_graph_attention.camp_models import TwoLayers
from lesson_lib.chapters.c10_graph_attention.experiments import camps
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick
from lesson_lib.graphs import GraphAttention, self_loops
from lesson_lib.masks import causal, from_edges
from lesson_lib.show import show, show_source
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %%
club = graphs.karate()
seen = torch.full((34,), -1)  # -1: not known
seen[club.known] = club.y[club.known]
drawing.network(club, guesses=seen)

# %% [markdown]
r"""
Wayne Zachary watched this club from 1970 to 1972. Member 0 is the instructor, Mr. Hi; member 33 leads the officers of the club. Member 11 met one person, member 8 met five.

## 1 · Messages along edges

The members are **nodes**. An **edge** from $j$ to $i$ says that $i$ hears $j$. A graph is written as a list of edges, shape $(2, \text{edges})$: above the **source** $j$, who speaks, below the **target** $i$, who hears. Two who met hear each other, so they make two edges:
"""

# %%
print("list of edges:", tuple(club.edge_index.shape))
source, target = club.edge_index
for i in (11, 8):
    print(f"{i} hears", source[target == i].tolist())

# %% [markdown]
r"""
An edge from a node to itself is a **self-loop**. We add one to each member, so that everybody hears itself, too.

In **message passing** each node $j$ sends $W x_j$ along its edges ($x_j$ is the node's vector, $W$ a matrix), and each node adds up what arrives, each message times a weight:

$$\text{out}_i = \sum_{j \to i} w_{ij}\, W x_j$$

A network of such layers is a **graph neural network**. What remains to be chosen is $w_{ij}$. The plainest choice is fixed: in a **GCN** (graph convolutional network, 2016) it is $1 / \sqrt{d_i d_j}$, where the **degree** $d$ counts the edges that arrive. Member 0 has 17 with its self-loop, member 11 has 2:
"""

# %%
edges = self_loops(club.edge_index, 34)
source, target = edges
degree = target.bincount()
weights = 1 / (degree[source] * degree[target]) ** 0.5
show(from_0_and_itself=weights[target == 11])

x = torch.eye(34)  # a vector for each member: who it is
messages = weights[:, None] * x[source]
out = torch.zeros(34, 34).index_add(0, target, messages)

# %% [markdown]
r"""
`index_add` adds each message to the row of its target. Member 11 takes 0.17 from member 0, who is heard by many, and 0.5 from itself. The degrees decide, whatever the vectors say. Attention lets the vectors decide: a score for each edge, and weights that sum to 1 at each target.

## 2 · Where does the 0 belong?

Attention knows masks. `from_edges(edges, 34)` is True in row $i$, column $j$ where $i$ hears $j$. And strangers, pairs without an edge? They are to be 0. Somebody writes `scores * mask`. Take member 11, with scores of 2 for itself and for member 0; $e^2 = 7.4$.
"""

# %%
predict("strangers_share")

# %%
mask = from_edges(edges, 34)
scores = torch.full((34,), 2.0) * mask[11]  # 2 at 0 and 11, else 0
print(f"to strangers: {scores.softmax(-1)[~mask[11]].sum():.2f}")
hidden = torch.where(mask[11], 2.0, -torch.inf)
print(f"with -inf:    {hidden.softmax(-1)[~mask[11]].sum():.2f}")
print(f"strangers among all pairs: {(~mask).float().mean():.2f}")

# %% [markdown]
r"""
**"A score of 0 means no attention."** $32 / (32 + 2 \cdot 7.4) = 0.68$. A score of 0 says nothing against anybody. "Do not compute it, it is 0" is right of the table of *weights*, behind the softmax; there $e^{-\infty}$ gives the 0. The slip is easy to make, since the program runs and each row sums to 1. In the whole club, if all scores were 0, strangers would get 84 % of the attention.

## 3 · Edge by edge

The surest way never asks strangers at all.
"""

# %%
predict("scores_left")

# %% [markdown]
r"""
But the softmax now runs over groups: the edges with the same target share a weight of 1, and the groups have different sizes. With $s_{ij}$ for a score, the sum below runs over all $k$ that $i$ hears:

$$w_{ij} = \frac{e^{s_{ij}}}{\sum_{k \to i} e^{s_{ik}}}$$
"""

# %% [markdown] tags=["exercise:along_edges"]
# Write attention along edges; `index_add` makes the sums for you.

# %%
along = yours("along_edges")  # ours, until yours has passed
q, k, v = torch.randn(3, 34, 8)
assert_close(along(q, k, v, edges), attend(q, k, v, mask=mask).output)
print("the same outputs from", edges.shape[1], "scores in place of", 34 * 34)

everybody = torch.ones(34, 34).nonzero().T  # all 1,156 edges
earlier = causal(34).nonzero().T.flip(0)  # from earlier to later
assert_close(along(q, k, v, everybody), attend(q, k, v).output)
assert_close(along(q, k, v, earlier), attend(q, k, v, mask=causal(34)).output)

# %% [markdown]
r"""
**Edge by edge, the same numbers.** With 100,000 nodes that hear ten others each, that is a million scores instead of ten billion. A node that hears nobody adds up nothing: 0.

The last lines say what masks are. Full attention is the graph in which everybody hears everybody; the causal mask has edges from earlier to later tokens.

## 4 · The score of a graph attention network

The **GAT** (graph attention network, 2017) makes queries, keys and values with one matrix, $z = W x$, and its score is a sum. The vectors $a_q$ and $a_k$ are learned:

$$s_{ij} = \text{LeakyReLU}(a_q \cdot z_i + a_k \cdot z_j)$$

LeakyReLU leaves positive numbers alone and takes a fifth of negative ones: $-2$ becomes $-0.4$. Why is it there?
"""

# %%
predict("without_the_bend")

# %%
friends = torch.tensor([0.0, 2.0])
for name, part in {"A": 5.0, "B": -5.0}.items():
    plain = (part + friends).softmax(-1)
    bent = F.leaky_relu(part + friends, 0.2).softmax(-1)
    print(name, [f"{w:.2f}" for w in plain], "bent:", [f"{w:.2f}" for w in bent])

# %% [markdown]
r"""
Without it the query's part $a_i = a_q \cdot z_i$ cancels, with $b_j = a_k \cdot z_j$:

$$\frac{e^{a_i + b_j}}{\sum_k e^{a_i + b_k}} = \frac{e^{a_i}\, e^{b_j}}{e^{a_i} \sum_k e^{b_k}} = \frac{e^{b_j}}{\sum_k e^{b_k}}$$

Whoever asks, the weights are the same. With the bend, B's difference of 2 has shrunk to 0.4: now the query says *how sharply* to choose. It still does not say *whom*: LeakyReLU rises everywhere, so all rank their friends alike. GATv2 (2021) puts the vector behind the bend, and lifts that limit.
"""

# %% [markdown] tags=["exercise:gat_scores"]
# Write the score of each edge.

# %%
layer = GraphAttention(34, 8)  # one head, as the library has it
z = layer.project(x)
a_query, a_key = layer.score.a_query[0], layer.score.a_key[0]
found = yours("gat_scores")(z, a_query, a_key, edges)
assert_close(found, layer.score.of_edges(z[:, None], z[:, None], *edges)[:, 0])

shares = found.exp()
shares = shares / torch.zeros(34).index_add(0, target, shares)[target]
out = torch.zeros(34, 8).index_add(0, target, shares[:, None] * z[source])
assert_close(out + layer.bias, layer(x, edges).output)

# %% [markdown]
r"""
That is the whole layer, with one head: your scores, your softmax, your sum, and a bias.

## 5 · Two labels

Now the puzzle. A network learns from two labels, those of the leaders. It reads a one-hot vector for each member, who it is, and the edges.
"""

# %%
show_source(TwoLayers)

# %% [markdown]
r"""
The first layer joins four heads, 32 numbers, and bends them: ELU is a ReLU that falls to $-1$ in a curve. Joined heads of the last layer would be eight numbers for two camps, so they are averaged. `fit` is the loop of 06b:
"""

# %%
task = club._replace(edge_index=edges)


def loss_of_leaders(model, task):
    logits = model(task.x, task.edge_index)  # (34, 2)
    return F.cross_entropy(logits[task.known], task.y[task.known])


model = camps.start("graph attention")  # TwoLayers(34, 2), seed 0
_ = fit(model, lambda _: task, loss_of_leaders, steps=200, lr=3e-3)
guesses = camps.logits(model, club).argmax(-1)
drawing.network(club, guesses=guesses)

# %%
assert quick() or camps.accuracy(model, club) > 0.9
assert quick() or guesses[8] != club.y[8]

# %% [markdown]
r"""
From two labels it finds nearly everybody; with this seed 31 of 32. Only member 8 is wrong.

Was it the edges? Take them away:
"""

# %%
predict("two_labels")

# %% tags=["nbval-ignore-output"]
full = camps.start("full attention")
print(f"before training, members differ by {camps.apart(full, club):.0e}")
history = fit(full, lambda _: task, loss_of_leaders, steps=200, lr=1e-2)
print(f"loss at the end {history.column('loss')[-1]:.3f}")

# %%
assert camps.apart(camps.start("full attention"), club) < 1e-6
assert quick() or history.column("loss")[-1] > 0.69

# %% [markdown]
r"""
The logits of all 34 are the same, up to rounding. At the start scores are near 0; each member mixes all vectors nearly evenly, and a second layer evens out the rest. Then one label pulls the common logits up, the other pulls them down as strongly, and nothing moves.

That is easily repaired: a residual path (06a) adds a member's own vector, projected, to each layer's output. Stored runs with three seeds:
"""

# %%
camps_figures.compared()

# %% [markdown]
r"""
With the residual path both labels are learned, and the others are guessed: nothing but the edges tells who belongs to whom. The GCN, whose weights are fixed, is as good as graph attention. Here the graph did the work. Whether attention helps on a real graph is the question of 10b.

## In real work

PyTorch Geometric has the layer; there `GATConv` adds self-loops by itself:

```python
from torch_geometric.nn import GATConv

layer = GATConv(34, 8, heads=4)
out = layer(x, edge_index)  # (34, 32)
```

Several graphs make a batch by being put side by side, the second one's nodes numbered on from the first one's. The bug that people meet: a list that names each pair once, like this one.
"""

# %%
once = torch.tensor([*networkx.karate_club_graph().edges]).T
hears = once[1].bincount(minlength=34)
print(tuple(once.shape), "hear nobody:", (hears == 0).nonzero().flatten().tolist())
both = torch.cat([once, once.flip(0)], 1)
assert torch.equal(from_edges(both, 34), from_edges(club.edge_index, 34))

# %% [markdown]
r"""
**"An edge from $j$ to $i$ means that $j$ looks at $i$."** Here the target looks. Mr. Hi stands above in all his 16 edges: everybody hears him, he hears nobody, and no error is raised.

## The club once more

Member 11 met Mr. Hi alone, and followed him; the network says so. Member 8 met both leaders, and all three seeds send him to the officers. Zachary tells what happened: he did lean to them, weakly. But he was three weeks from his black belt, and the officers' new club would have let him begin again. He stayed with Mr. Hi. No edge says that.

**To remember.** A graph is a mask; attend along its edges, and strangers are never asked.

- The *weight* of a stranger is 0. A score of 0 is a score like any other.
- Message passing: gather at the source, weigh, add up at the target.
- A GCN's weights are fixed by degrees; a GAT's come from both ends, and need the bend.
- Without edges and without a residual path all nodes come out the same.

**Sources.** Zachary 1977, *An information flow model for conflict and fission in small groups*; Gilmer et al. 2017 (arXiv:1704.01212); Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491). Seeds, claims: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: 10b, a real graph: does attention help there?
"""
