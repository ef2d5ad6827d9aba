# %% [markdown]
r"""
# 10a · What if we know who is connected?

A karate club of 34 split in two. Members 0 and 33 led the camps. Of the others we know only whom each met outside the club. Look at the picture: whom did member 11 follow, and whom member 8?

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
camps_figures.puzzle(club)

# %% [markdown]
r"""
Wayne Zachary watched this club from 1970 to 1972. Member 0 is its instructor, Mr. Hi; 33 leads the officers.

## 1 · Messages along edges

The members are **nodes**. An **edge** from $j$ to $i$ says that $i$ hears $j$. A list of edges has two rows: above the **source** $j$, who speaks, below the **target** $i$, who hears. Two who met hear each other and make two edges:
"""

# %%
print("list of edges:", tuple(club.edge_index.shape))
source, target = club.edge_index
for i in (11, 8):
    print(f"{i} hears", source[target == i].tolist())

# %% [markdown]
r"""
An edge from a node to itself is a **self-loop**. We add one to each member, so that everybody hears itself, too.

In **message passing** each node adds up what arrives along its edges, a message $W x_j$ from each source ($x_j$ is the source's vector, $W$ a matrix), times a weight:

$$\text{out}_i = \sum_{j \to i} w_{ij}\, W x_j$$

A network of such layers is a **graph neural network**. What weights? In a **GCN** (graph convolutional network, 2016) they are fixed, $1 / \sqrt{d_i d_j}$; the **degree** $d$ counts the edges that arrive. Let each leader say a number, 1 and $-1$, all others 0, and let $W = 1$:
"""

# %%
edges = self_loops(club.edge_index, 34)
source, target = edges
degree = target.bincount()
weights = 1 / (degree[source] * degree[target]) ** 0.5
says = torch.zeros(34)
says[0], says[33] = 1, -1
arrived = torch.zeros(34).index_add(0, target, weights * says[source])
show(at_11=arrived[11], at_8=arrived[8])

# %% [markdown]
r"""
`index_add` adds each message at the place of its target. Mr. Hi has degree 17, member 11 has 2: $1/\sqrt{34} = 0.17$. Member 8 hears both leaders, and they nearly cancel. In a GCN the degrees decide. In attention the vectors do: a score for each edge, and weights that sum to 1 at each target.

## 2 · Where does the 0 belong?

Attention has masks. `from_edges(edges, 34)` is True in row $i$, column $j$ where $i$ hears $j$. All others are strangers, and are to be 0. Somebody writes `scores * mask`. ($e^2 = 7.4$.)
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
**"A score of 0 means no attention."** $32 / (32 + 2 \cdot 7.4) = 0.68$. A score of 0 says nothing against anybody. "No edge: do not compute it, it is 0" is right of the *weights*, behind the softmax, where $e^{-\infty} = 0$. The slip is easy to make: the program runs, and each row sums to 1. Were all scores 0, strangers would get 84 % of the club's attention.

## 3 · Edge by edge

Better not to ask strangers at all.
"""

# %%
predict("scores_left")

# %% [markdown]
r"""
Now the softmax runs over groups: edges with the same target share a weight of 1. With scores $s_{ij}$, and a sum over all $k$ that $i$ hears:

$$w_{ij} = \frac{e^{s_{ij}}}{\sum_{k \to i} e^{s_{ik}}}$$
"""

# %% [markdown] tags=["exercise:along_edges"]
# Write it. `index_add` makes the sums.

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
**Edge by edge, the same numbers.** For 100,000 nodes that hear ten each: a million scores, not ten billion. The last lines say what masks are: full attention is the graph in which everybody hears everybody; a causal mask has edges from earlier to later tokens.

## 4 · The score of a graph attention network

A **GAT** (graph attention network, 2017) has one matrix for queries, keys and values, $z = W x$. Its score is a sum, with two learned vectors $a_q$ and $a_k$:

$$s_{ij} = \text{LeakyReLU}(a_q \cdot z_i + a_k \cdot z_j)$$

LeakyReLU, the bend, leaves positive numbers alone and takes a fifth of negative ones: $-2$ becomes $-0.4$. Why is it there?
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
Let $p_i = a_q \cdot z_i$ and $r_j = a_k \cdot z_j$. Without the bend the query's part cancels:

$$\frac{e^{p_i + r_j}}{\sum_k e^{p_i + r_k}} = \frac{e^{p_i}\, e^{r_j}}{e^{p_i} \sum_k e^{r_k}} = \frac{e^{r_j}}{\sum_k e^{r_k}}$$

Whoever asks, the weights are the same. With the bend, B's difference of 2 shrinks to 0.4: the query now says *how sharply* to choose. It does not say *whom*: LeakyReLU rises everywhere, so all rank their friends alike. GATv2 (2021) bends before it multiplies by its vector, and lifts that limit.
"""

# %% [markdown] tags=["exercise:gat_scores"]
# Write it.

# %%
layer = GraphAttention(34, 8)  # one head, as the library has it
z = layer.project(club.x)
a_query, a_key = layer.score.a_query[0], layer.score.a_key[0]
shares = yours("gat_scores")(z, a_query, a_key, edges).exp()
shares = shares / torch.zeros(34).index_add(0, target, shares)[target]
out = torch.zeros(34, 8).index_add(0, target, shares[:, None] * z[source])
assert_close(out + layer.bias, layer(club.x, edges).output)

# %% [markdown]
r"""
That is the whole layer, with one head: scores, softmax, sum, bias.

## 5 · Two labels

Now the puzzle. A network reads the edges and a vector for each member, which says who it is: 34 numbers, a 1 at its own place. It learns from two labels, the leaders'.
"""

# %%
show_source(TwoLayers)

# %% [markdown]
r"""
The first layer's heads are joined and bent: ELU is a ReLU that falls, in a curve, to $-1$. Joined, the last layer's heads would be eight numbers for two camps; so they are averaged. `fit` is the loop of 06b:
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
assert quick() or (guesses[11] == club.y[11] and guesses[8] != club.y[8])

# %% [markdown]
r"""
From two labels it finds nearly everybody. Member 8 is wrong.

Was it the edges? Take them away:
"""

# %%
predict("two_labels")

# %% tags=["nbval-ignore-output"]
full = camps.start("full attention")
low, high = camps.first_weights(full, club)
print(f"before training: first weights from {low:.3f} to {high:.3f}")
print(f"members' logits differ by {camps.apart(full, club):.0e}")
history = fit(full, lambda _: task, loss_of_leaders, steps=200, lr=1e-2)
print(f"loss at the end {history.column('loss')[-1]:.3f}")

# %%
assert camps.apart(camps.start("full attention"), club) < 1e-6
assert quick() or history.column("loss")[-1] > 0.69

# %% [markdown]
r"""
All members' logits are the same, up to rounding: at the start each mixes all 34 vectors nearly evenly ($1/34 = 0.029$), and a second time. One label pulls the common logits up, the other pulls them down as strongly. Nothing moves.

A residual path (06a) adds each layer's input, projected, to its output. Stored runs, three seeds:
"""

# %%
camps_figures.compared()

# %% [markdown]
r"""
With it both labels are learned, and the others guessed: only the edges tell who belongs to whom. Along them all three find nearly everybody, even the GCN with its fixed weights. **Here the graph did the work.**

## In real work

For a small graph, `F.scaled_dot_product_attention` takes the mask. PyTorch Geometric's `GATConv` adds self-loops by itself:

```python
from torch_geometric.nn import GATConv

layer = GATConv(34, 8, heads=4)
out = layer(x, edge_index)  # x (34, 34), out (34, 32)
```

A batch of graphs is one graph, its nodes numbered on. The bug that people meet is a list that names each pair once:
"""

# %%
once = torch.tensor([*networkx.karate_club_graph().edges]).T
hears = once[1].bincount(minlength=34)
print(tuple(once.shape), "hear nobody:", (hears == 0).nonzero().flatten().tolist())
both = torch.cat([once, once.flip(0)], 1)
assert torch.equal(from_edges(both, 34), from_edges(club.edge_index, 34))

# %% [markdown]
r"""
**"An edge from $j$ to $i$ means that $j$ looks at $i$."** The target looks. In this list Mr. Hi only speaks: he hears nobody, and no error says so.

## The club once more

Member 11 met Mr. Hi alone, and followed him; the network says so. Member 8 met both leaders; all three seeds send him to the officers. Zachary tells that he leaned to them. But he was three weeks from his black belt, and the officers' club would have made him begin again. He stayed with Mr. Hi. No edge says that.

**To remember.** A graph is a mask; along its edges strangers are never asked.

- A stranger's *weight* is 0, not its score.
- Message passing: gather at the source, weigh, add at the target.
- A GCN's weights are fixed; a GAT's come from both ends, and need the bend.
- Without edges or residual path all nodes come out the same.

**Sources.** Zachary 1977; Gilmer et al. 2017 (arXiv:1704.01212); Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491). Seeds, claims: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: 10b: does attention help on a real graph?
"""
