# %% [markdown]
r"""
{title}

A karate club of 34 split in two. Members 0 and 33 led the camps. Of the others we know only whom each met outside the club. Look at the picture: whom did member 11 follow, and whom member 8?

**Afterwards you can** attend along a list of edges; say where the 0 of a stranger belongs; build and train a graph attention network.

{about}

<details><summary>中文摘要 · Chinese</summary>
一个空手道俱乐部分裂成两派,我们只知道谁和谁有来往。这一课沿着图的边传递消息:先看固定的权重(GCN),再亲手写出沿边的注意力和 GAT 的分数,弄清“分数为 0”为什么不是“权重为 0”。最后用两个已知的标签训练网络,并说明不看边、没有残差的注意力为什么连这两个标签都学不会。
</details>

{sources}
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
Wayne Zachary watched this club from 1970 to 1972. Member 0 is its instructor, Mr. Hi; 33, its president, leads the officers, who run it.

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
Everybody is to hear itself, too: we add a **self-loop** to each node, an edge from it to itself.

In **message passing** each node adds up what arrives along its edges, a message $W x_j$ from each source ($x_j$ is the source's vector, $W$ a matrix), times a weight:

$$\text{out}_i = \sum_{j \to i} w_{ij}\, W x_j$$

A network of such layers is a **graph neural network**. What weights? In a **GCN** (graph convolutional network) they are fixed, $1 / \sqrt{d_i d_j}$, where the **degree** $d$ counts the edges that arrive: so a member with many edges neither shouts nor drowns. Let each leader say a number, 1 and $-1$, all others 0, and let $W = 1$:
"""

# %%
edges = self_loops(club.edge_index, 34)
source, target = edges
degree = target.bincount()  # how often each node is a target
weights = 1 / (degree[source] * degree[target]) ** 0.5
says = torch.zeros(34)
says[0], says[33] = 1, -1
messages = weights * says[source]  # one for each edge
# index_add: each message is added at the place of its target
arrived = torch.zeros(34).index_add(0, target, messages)
show(at_11=arrived[11], at_8=arrived[8])

# %% [markdown]
r"""
Mr. Hi has degree 17, member 11 has 2: $1/\sqrt{34} = «0.17»$. Member 8 hears both leaders, of degrees 17 and 18, which nearly cancel. In a GCN the degrees decide. In attention the vectors do: a score for each edge, and weights that sum to 1 at each target.

## 2 · Where does the 0 belong?

Attention has masks. `from_edges(edges, 34)` is True in row $i$, column $j$ where $i$ hears $j$. All others are strangers; their weights are to be 0. Somebody writes `scores * mask`.
"""

# %%
predict("strangers_share")

# %%
mask = from_edges(edges, 34)
scores = torch.full((34,), 2.0) * mask[11]  # 2 at 0 and 11, else 0
print(f"to strangers: {scores.softmax(-1)[~mask[11]].sum():.2f}")
hidden = torch.where(mask[11], 2.0, -torch.inf)
print(f"with -inf:    {hidden.softmax(-1)[~mask[11]].sum():.2f}")

# %% [markdown]
r"""
**"A score of 0 means no attention."** $32 / (32 + 2 \cdot 7.4) = «0.68»$. A score of 0 says nothing against anybody. "No edge: do not compute it, it is 0" holds for the *weights*, after the softmax, where $e^{-\infty} = 0$. The slip is easy: the program runs, and each row sums to 1.

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
# Write it, with $s_{ij} = q_i \cdot k_j / \sqrt{d_k}$. `index_add` makes the sums; it adds rows, too.

# %%
along = yours("along_edges")  # ours, until yours has passed
q, k, v = torch.randn(3, 34, 8)
assert_close(along(q, k, v, edges), attend(q, k, v, mask=mask).output)
print("the same outputs from", edges.shape[1], "scores in place of", 34 * 34)

# %% [markdown]
r"""
**Edge by edge, the same numbers.** For 100,000 nodes that hear ten each: a million scores, not ten billion. (Large scores overflow `exp`; libraries first subtract each target's maximum.) Other masks are graphs, too:
"""

# %%
everybody = torch.ones(34, 34).nonzero().T  # each to each
# nonzero gives (row, column) = (target, source), so flip
earlier = causal(34).nonzero().T.flip(0)
assert_close(along(q, k, v, everybody), attend(q, k, v).output)
assert_close(along(q, k, v, earlier), attend(q, k, v, mask=causal(34)).output)
print(f"everybody: {everybody.shape[1]} edges, causal: {earlier.shape[1]}")

# %% [markdown]
r"""
In full attention everybody hears everybody. A causal mask has edges from each token to itself and to later ones.

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
    pairs = ["{:.2f} {:.2f}".format(*w) for w in (plain, bent)]
    print(name, pairs[0], "bent:", pairs[1])

# %% [markdown]
r"""
Let $p_i = a_q \cdot z_i$ and $r_j = a_k \cdot z_j$. Without the bend the query's part cancels:

$$\frac{e^{p_i + r_j}}{\sum_k e^{p_i + r_k}} = \frac{e^{p_i}\, e^{r_j}}{e^{p_i} \sum_k e^{r_k}} = \frac{e^{r_j}}{\sum_k e^{r_k}}$$

All who hear the same friends weigh them alike. With the bend, B's difference of 2 shrinks to 0.4: the query now says *how sharply* to choose. It does not say *whom*: LeakyReLU rises everywhere, so all still rank them alike. GATv2 (2021) bends first: $a \cdot \text{LeakyReLU}(W_q x_i + W_k x_j)$. There the query decides which entries are bent, so the ranking can change.
"""

# %% [markdown] tags=["exercise:gat_scores"]
# Write it. Then it becomes the library's `GraphAttention`: scores, softmax, sum, a learned bias.

# %%
layer = GraphAttention(34, 8)  # widths; one head
z = layer.project(club.x)  # row i of x: a 1 at place i, else 0
a_query, a_key = layer.score.a_query[0], layer.score.a_key[0]
shares = yours("gat_scores")(z, a_query, a_key, edges).exp()
shares = shares / torch.zeros(34).index_add(0, target, shares)[target]
out = torch.zeros(34, 8).index_add(0, target, shares[:, None] * z[source])
assert_close(out + layer.bias, layer(club.x, edges).output)
print("the same outputs:", tuple(out.shape))

# %% [markdown]
r"""
## 5 · Two labels

Now the puzzle. A network reads the edges and $x$, which says who each member is. It learns from two labels, the leaders'.
"""

# %%
show_source(TwoLayers)

# %% [markdown]
r"""
The first layer's heads are joined and put through ELU, a ReLU that falls, in a curve, to $-1$. Joined, the last layer's heads would be eight numbers for two camps; so they are averaged. `fit` is the loop of 06b:
"""

# %% tags=["nbval-ignore-output"]
task = club._replace(edge_index=edges)


def loss_of_leaders(model, task):
    logits = model(task.x, task.edge_index)  # (34, 2)
    known = task.known  # [0, 33]
    return F.cross_entropy(logits[known], task.y[known])  # y: the camps


model = camps.start("graph attention")  # TwoLayers(34, 2), seed 0
rate = 3e-3  # chosen on other graphs
_ = fit(model, lambda _: task, loss_of_leaders, steps=200, lr=rate)
guesses = camps.logits(model, club).argmax(-1)  # adds the self-loops
print("wrong:", (guesses != club.y).nonzero().flatten().tolist())
drawing.network(club, guesses=guesses)

# %% tags=["proof"]
assert quick() or camps.accuracy(model, club) > 0.9
assert quick() or (guesses[11] == club.y[11] and guesses[8] != club.y[8])

# %% [markdown]
r"""
From two labels it finds nearly everybody. Member «8» is wrong.

Was it the edges? Take them away:
"""

# %%
predict("two_labels")

# %% tags=["nbval-ignore-output"]
full = camps.start("full attention")
low, high = camps.first_weights(full, club)
print(f"before training: first weights from {low:.3f} to {high:.3f}")
apart = camps.apart(full, club)
print(f"two members' logits differ by {apart:.0e} at most")
rate = 1e-2  # chosen in the same way
history = fit(full, lambda _: task, loss_of_leaders, steps=200, lr=rate)
print(f"loss at the end {history.column('loss')[-1]:.3f}")
assert apart < 1e-6

# %% tags=["proof"]
assert quick() or history.column("loss")[-1] > 0.69

# %% [markdown]
r"""
All members' logits are the same, up to rounding: at the start each mixes all 34 vectors nearly evenly ($1/34 = 0.029$), and a second time. One label pulls the common logits up, the other down. They balance where both camps get $1/2$; there it stays.

A residual path (06a) adds each layer's input, projected, to its output. Stored runs, three seeds:
"""

# %%
camps_figures.compared()

# %% [markdown]
r"""
With it both labels are learned, and the others guessed: only the edges tell who belongs to whom. Along them attention, GCN and dot products place 30 or 31 of 32, even with fixed weights. **Here the graph did the work.**

## In real work

For a small graph, `F.scaled_dot_product_attention` takes the mask. PyTorch Geometric's `GATConv` adds self-loops by itself:

```python
from torch_geometric.nn import GATConv

layer = GATConv(34, 8, heads=4)
out = layer(x, edge_index)  # x (34, 34), out (34, 32)
```

The bug that people meet is a list that names each pair once:
"""

# %%
once = torch.tensor([*networkx.karate_club_graph().edges]).T
nobody = once[1].bincount(minlength=34) == 0
print(tuple(once.shape), "hear nobody:", nobody.nonzero()[:, 0].tolist())
both = torch.cat([once, once.flip(0)], 1)
assert torch.equal(from_edges(both, 34), from_edges(club.edge_index, 34))

# %% [markdown]
r"""
**"An edge from $j$ to $i$ means that $j$ looks at $i$."** The target looks. networkx lists the smaller number first; these nine have no smaller partner. Mr. Hi only speaks, and no error says so.

## The club once more

Member 11 met only Mr. Hi, and followed him; the network says so. Member 8 met both leaders, and is placed with the officers in all three seeds. Zachary reports that he leaned to them. But he was three weeks from his black belt, and the officers' club would have made him begin again. He stayed with Mr. Hi. No edge says that.

**To remember.** A graph is a mask; along its edges strangers are never asked.

- A stranger's *weight* is 0, not its score.
- Message passing: gather at the source, weigh, add at the target.
- A GCN's weights are fixed; a GAT's come from both ends, and need the bend.
- Without edges or residual path all logits start out the same, and here stayed so.

**Sources.** Zachary 1977; Gilmer et al. 2017 (arXiv:1704.01212); Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491). Claims: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: [10b · A real graph](10b_real_graph.ipynb).
"""
