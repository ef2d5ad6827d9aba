# %% [markdown]
r"""
# 10 · Graph attention: what if we know who is connected?

**The question.** Attention has to find out by itself what belongs together. Sometimes that is known beforehand: who met whom, which atoms are bound, which page links to which. Then why look at all the others? What is gained by looking along the known connections only, and what does "do not look" mean, exactly?

**After this lesson you can**

- write a graph as a list of edges and as a mask, and compute what one node gets, by hand;
- say why a *score* of 0 is not a *weight* of 0, and measure the damage of taking the one for the other;
- compute attention edge by edge, without a table, and prove that it gives the same numbers;
- name what makes a GAT a GAT, and build one that gives PyTorch Geometric's numbers;
- recognise the window, the causal mask and full attention as graphs;
- find the members of two camps from two known ones, and say when edges mislead.

**Time** about 100 minutes; a good place to stop is before section 5. **You need** lessons [02a](02a_soft_look_up.ipynb) to [04](04_multi_head.ipynb); section 5 looks back at lesson [09](09_truncated_attention.ipynb). Of graphs you need to know nothing.
**Exercises**: [exercises/10_graph_attention](exercises/10_graph_attention.ipynb).
"""

# %%
from statistics import fmean

import networkx
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c10_graph_attention import figures
from lesson_lib.chapters.c10_graph_attention import graphs as data
from lesson_lib.chapters.c10_graph_attention import graphs_figures as drawing
from lesson_lib.chapters.c10_graph_attention.experiments import club
from lesson_lib.claims import claim, verdict
from lesson_lib.device import on, to_device
from lesson_lib.experiments import devices, results
from lesson_lib.graphs import GraphAttention, attend_edges, self_loops
from lesson_lib.masks import causal, from_edges, window
from lesson_lib.measure import cpu_seconds, peak_mib
from lesson_lib.scores import GraphScore, scaled_dot
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** In a club of 34, one member has met two others. The other 31 are strangers, and attention is told so by giving them a *score of 0*. The scores for the two friends and for the member itself happen to be 0 as well. How much of the weight goes to strangers?
>
> <details><summary>Answer</summary>
> 31 of 34: 91 %. All scores are equal, so all weights are. A score of 0 says nothing against anybody. Section 2 measures such weights, section 6 what they do to a network.
> </details>

## 1 · A graph is a mask

### A club that split in two

From 1970 to 1972 Wayne Zachary watched a karate club. The instructor, "Mr. Hi", and the president, "the Officer", quarrelled about money. In the end the club split, and each member went with one of the two. Zachary had noted who met whom outside the club. In his graph the members are the **nodes**, and an **edge** joins two who met:
"""

# %%
task = data.karate()
n = len(task.y)
print(n, "members,", task.edge_index.shape[1] // 2, "pairs who met")
drawing.network(task)

# %% [markdown]
r"""
Colour and shape tell who went with whom in the end. Thick frames: the two leaders, 0 and 33. Look who met whom: you could guess nearly everybody's choice from the lines. In section 6 a network has to do that, told of the two leaders alone.

### Two ways to write it down

A list of edges has a column for each: the **source** on top, the **target** below. An edge from $j$ to $i$ says that $i$ may look at $j$, so that something can flow from $j$ to $i$. Whoever met somebody was met: such an edge is listed both ways. As a mask, the same edge is a cell: row $i$, column $j$.
"""

# %%
edge_index = torch.tensor([[1, 2, 3, 0, 3], [0, 0, 0, 1, 2]])
figures.writings(edge_index, n=5)

# %%
mask = from_edges(edge_index, n=5)
show(mask.int())

# %% [markdown]
r"""
Node 0 may look at 1, 2 and 3. Node 3 looks at nobody, and node 4 has no edge at all: it is **isolated**. Nobody looks at itself here; where nodes should, an edge from each to itself is added, a **self-loop**. `self_loops(edges, n)` does that; `from_edges`, `attend_edges` and `GraphAttention` never do it by themselves.

### One node, by hand

So attention on a graph is `attend` with `mask=from_edges(...)`, and that was the lesson's key line. Take node 0 and its three neighbours. Their scores are 0, 0 and ln 2 ≈ 0.69, their values 10, 20 and 40.

> **Predict.** The three weights, and the output?
>
> <details><summary>Answer</summary>
> exp of the scores: 1, 1, 2. So the weights are 1/4, 1/4, 1/2, and the output is 2.5 + 5 + 20 = 27.5. Values of nodes without an edge do not matter, whatever they are.
> </details>
"""

# %%
values = torch.tensor([[70.0], [10.0], [20.0], [40.0], [1000.0]])
table = torch.zeros(5, 5)
table[0, 3] = torch.tensor(2.0).log()
by_hand = attend(values, values, values, score=lambda q, k: table, mask=mask)
show(by_hand.weights)
show(by_hand.output[:, 0])

# %%
figures.messages(
    [-torch.inf, 0.0, 0.0, 0.6931, -torch.inf], by_hand.weights[0].tolist(),
    values[:, 0].tolist(), names=["0", "1", "2", "3", "4"], node="0",
)  # fmt: skip

# %% [markdown]
r"""
- Node 1 has one neighbour, node 0: all its weight, 1, goes there, and its output is 70. A node with one neighbour has no choice, whatever the score.
- Nodes 3 and 4 look at nobody. Their output is 0, not "nan": `attend` gives a row with nothing to see exactly 0 (lesson 03).

People who work with graphs call this **message passing**: each source sends a message along each edge (its value, times a weight), and each target adds up what arrives. Networks of such layers are **graph neural networks** (GNN). Attention along edges is one kind of them: the one in which the weights are computed from the vectors at both ends.

## 2 · A score of 0 is not a weight of 0

One of our sources (S3, the lecture notes on self-attention) says of nodes without an edge: no need to compute the attention score, set it to 0. Try it, on node 0 and its table of scores above:

> **Predict.** Scores 0, 0 and 0.69 for the neighbours, and 0 for node 4, a stranger, and for node 0 itself, since it has no self-loop here. What weight goes where no edge leads?
>
> <details><summary>Answer</summary>
> exp: 1, 1, 2 for neighbours, 1 and 1 for the two others; 2/6 = a third of the weight goes where no edge leads. And the value 1000 of the isolated node flows in: the output is about 197 in place of 27.5.
> </details>
"""

# %%
scores_to_0 = attend(values, values, values, score=lambda q, k: table * mask)
show(scores_to_0.weights[0])
show(scores_to_0.output[:1, 0].round())

# %% [markdown]
r"""
What must be 0 is the **weight**. There are two ways to that: set the *score* to $-\infty$ before softmax, as `mask` does; or do not let strangers enter the sum at all, as the next section does. In the club:
"""

# %%
loops = self_loops(task.edge_index, n)
joined = from_edges(loops, n)
x, other = torch.randn(2, n, 16)


def zeroed(query, key):
    """The source's sentence: pairs without an edge get score 0."""
    return scaled_dot(query, key) * joined


with_minus_infinity = attend(x, other, x, mask=joined)
with_zero = attend(x, other, x, score=zeroed)
on_strangers = (with_zero.weights * ~joined).sum(-1)
show(on_strangers.mean(), on_strangers.min(), on_strangers.max())
figures.shares(
    {
        "score 0 for strangers": with_zero.weights,
        "weight 0 for strangers": with_minus_infinity.weights,
    },
    joined,
)

# %% [markdown]
r"""
With random queries and keys, three quarters of all weight lie on strangers. For nodes with few friends (on the left) it is nearly all of it, and even the leaders, who know half of the club, give strangers a quarter and more. With weight 0 nothing does.

The slip is easy to make and hard to see. The program runs, the weights sum to 1, the loss goes down. What it does to accuracy comes in section 6.

## 3 · Edge by edge

A mask saves nothing (lesson 09): all $n^2$ scores are computed. For 34 members that is no matter. For 100,000 nodes with 10 neighbours each, the table has $10^{10}$ cells, 37 GiB for each head, and a million of them count: one in ten thousand.

So compute one score *per edge*. What remains is softmax over groups: all edges that lead to one target share a weight of 1. In a few lines, with `index_add`, which adds up rows by number:
"""


# %%
def along_edges(query, key, value, edge_index):
    """Attention with one head: a score, a weight and a message for each edge."""
    source, target = edge_index
    scores = (query[target] * key[source]).sum(-1) / query.shape[-1] ** 0.5
    unnormalised = scores.exp()
    total = torch.zeros(len(query)).index_add(0, target, unnormalised)
    weights = unnormalised / total[target]
    messages = weights[:, None] * value[source]
    return torch.zeros_like(value).index_add(0, target, messages)


assert_close(along_edges(x, other, x, loops), with_minus_infinity.output)
print("the same numbers, from", loops.shape[1], "scores in place of", n * n)

# %% [markdown]
r"""
No mask, no $-\infty$: strangers never enter. A node without neighbours adds up nothing, and gets 0. One thing is missing: scores of 100 make `exp` overflow. The library takes the highest score of each target off first, as softmax does (`scatter_reduce` with "amax" finds it); it takes several heads, any score of the course, and sends the messages some thousand edges at a time (`_Messages`):
"""

# %%
show_source(attend_edges)

# %%
heads = torch.randn(3, n, 4, 8)  # queries, keys, values of 4 heads, behind the nodes
edges = attend_edges(*heads, loops)
tables = attend(*heads.transpose(1, 2), mask=joined)
assert_close(edges.output, tables.output.transpose(0, 1))
at_edges = tables.weights[:, loops[1], loops[0]].T
assert_close(edges.weights, at_edges)
print("4 heads, outputs and weights: equal")

# %% [markdown]
r"""
The cost is that of the edges. Graphs in which every node has 10 sources (its **degree**), more and more nodes:
"""


# %%
def of_degree_10(n):
    """A random graph, every node with 10 sources."""
    generator = torch.Generator("cpu").manual_seed(n)
    sources = torch.randint(n, (10 * n,), generator=generator, device="cpu")
    return torch.stack([sources, torch.arange(n, device="cpu").repeat(10)])


# %% tags=["measured"]
def cost(n):
    """Seconds and MiB of a layer with 4 heads, along the edges and with the table."""
    layer, x, graph = (
        GraphAttention(16, 8, n_heads=4),
        torch.randn(n, 16),
        of_degree_10(n),
    )
    mask = from_edges(graph, n)
    ways = {"edges": lambda: layer(x, graph), "table": lambda: layer.dense(x, mask)}
    rows = []
    for kind, way in ways.items():
        with on("cpu"):
            row = {"kind": kind, "n": n, "mib": peak_mib(way)}
        rows.append(row | {"seconds": cpu_seconds(torch.no_grad()(way))})
    return rows


costs = [row for size in (250, 500, 1000, 2000) for row in cost(size)]
for along, whole in zip(costs[::2], costs[1::2], strict=True):
    print(f"{along['n']:5,} nodes: edges {along['mib']:4.1f} MiB,", end=" ")
    print(f"table {whole['mib']:5.1f} MiB")
figures.sparse_dense(costs, devices.beside("graph"))

# %%
verdict("2,000 nodes: edges take less than a fifth of the table's time",
    costs[-2]["seconds"] < costs[-1]["seconds"] / 5, trained=True)  # fmt: skip

# %% [markdown]
r"""
Twice the nodes: at most twice the memory along edges, four times with the table; and so it is with the time, once a graph is large enough. (With a GPU at hand, a panel beside shows its seconds; without one, those of a stored run on a GPU, if there is one.) (`GraphAttention` is a layer of the next section; `dense` is the same layer with the table. A list may name an edge twice, and these drawn ones do at times; it then counts twice along the edges, and once in a mask. Where that matters, keep lists unique.)

## 4 · What makes a GAT

The **graph attention network** (GAT, 2017) is what most people mean by attention on graphs. Its layer has one projection $W$, for queries, keys and values alike, and scores by addition, as Bahdanau's of lesson 02, with a vector for each end:

$$z = Wx, \qquad e_{ij} = \mathrm{LeakyReLU}(a_q \cdot z_i + a_k \cdot z_j), \qquad \mathrm{out}_i = \sum_{j \to i} \mathrm{softmax}_j(e_{ij}) \, z_j$$

A layer has several heads, joined side by side as in lesson 04, and adds a bias at the end. LeakyReLU leaves positive numbers as they are and takes a fifth of negative ones. By hand: $a_q \cdot z_i = 1$ and $a_k \cdot z_j = -3$ give $\mathrm{LeakyReLU}(-2) = -0.4$.

Written with `attend`, it is another score, and a mask:
"""

# %%
gat = GraphAttention(16, 8, n_heads=4)
z = gat.project(x).unflatten(-1, (4, 8)).transpose(0, 1)


def gat_score(query, key):
    """e_ij for all pairs, each head with its own two vectors."""
    to_query = (query * gat.score.a_query[:, None]).sum(-1)
    to_key = (key * gat.score.a_key[:, None]).sum(-1)
    return F.leaky_relu(to_query[..., :, None] + to_key[..., None, :], 0.2)


output = attend(z, z, z, score=gat_score, mask=joined).output
together = output.transpose(0, 1).flatten(1) + gat.bias
assert_close(together, gat(x, loops).output)
assert_close(together, gat.dense(x, joined).output)
print("attend with another score, the dense form, the edge form: equal")

# %% [markdown]
r"""
That is PyTorch Geometric's `GATConv`, too: `GraphAttention.from_pyg` copies the weights of one, and the project's tests hold both to the same numbers. (It is a large package, so the course does not install it for you.) `GATConv` adds self-loops by itself; `GraphAttention` wants to be given them.

### All look the same way

> **Predict.** In $\mathrm{LeakyReLU}(a_q \cdot z_i + a_k \cdot z_j)$, take two queries $i$ and two keys. Can query 1 prefer key A, and query 2 prefer key B?
>
> <details><summary>Answer</summary>
> No. The query's part is the same for both keys, and LeakyReLU rises everywhere. Whichever key has the larger a_k · z_j is preferred by all.
> </details>

Brody, Alon and Yahav noticed that in 2021, four years after the paper, and called it *static* attention. They made two changes: the LeakyReLU goes *before* the vector, of which there is only one now, and queries get a projection of their own: $e_{ij} = a \cdot \mathrm{LeakyReLU}(W_q x_i + W x_j)$. That is GATv2, `dynamic=True`; and it is Bahdanau's additive score with another bend.
"""

# %%
_ = torch.manual_seed(1)
queries, keys = torch.randn(2, 1, 8, 6)
shown = {
    "GAT": GraphScore(6)(queries, keys)[0].detach(),
    "GATv2": GraphScore(6, dynamic=True)(queries, keys)[0].detach(),
    "dot product": scaled_dot(queries, keys)[0],
}
for name, scores in shown.items():
    favourite = scores.argmax(-1)
    print(f"{name:12} favourite keys of the 8 queries: {favourite.tolist()}")
figures.static(shown)

# %% [markdown]
r"""
Lesson 02's additive and dot-product scores can both do what the GAT's cannot. (In the GAT's map one key is everybody's favourite; in the others there are two, and six.) Along edges a node chooses among its own neighbours only, so that two nodes still may have different favourites: those of different friends.

## 5 · Masks you have met are graphs

A graph whose nodes stand in a row, each joined with the next, is a **path graph**. With self-loops its mask is a band. Join also those who are at most $r$ steps apart, and the band reaches $r$ cells to each side:
"""


# %%
def mask_of(graph):
    """The mask of a networkx graph, self-loops added; its edges go both ways."""
    edge_index = torch.tensor([*graph.to_directed().edges]).T
    return from_edges(self_loops(edge_index, len(graph)), len(graph))


path = networkx.path_graph(12)
within_three = networkx.power(path, 3)  # joined if at most 3 steps apart
assert torch.equal(mask_of(path), window(12, radius=1))
assert torch.equal(mask_of(within_three), window(12, radius=3))
assert mask_of(networkx.complete_graph(12)).all()
figures.masks(
    {
        "path graph": mask_of(path),
        "complete graph": mask_of(networkx.complete_graph(12)),
        "the club": joined,
    }
)

# %% [markdown]
r"""
- The **path graph** with self-loops is the window of radius 1; with all joined who are at most $r$ steps apart, radius $r$. So lesson 09 is attention on a path.
- The **complete graph** with self-loops, everyone joined with everyone, is full attention: lesson 02.
- Arrows from earlier to later tokens, with self-loops, are the **causal** mask: lesson 06.

So a graph is the general case, and a text is the graph in which everybody knows everybody. Why then keep `attend_window`? Because a band is regular: blocks of it are large matrix products. A list of edges is general and pays for it: each edge is looked up by itself.
"""

# %%
later = causal(12).nonzero().T.flip(0)  # rows (target, source) -> (source, target)
x12 = torch.randn(12, 5)
per_edge = attend_edges(*[x12[:, None]] * 3, later).output[:, 0]
assert_close(per_edge, attend(x12, x12, x12, mask=causal(12)).output)
print("causal attention along", later.shape[1], "edges: equal")

# %% [markdown]
r"""
One thing a graph has not is an order. Number the members differently, and every member keeps its output:
"""

# %%
new_number = torch.randperm(n)
renamed = new_number[loops]  # the edges, with the new numbers
moved = torch.empty_like(x)
moved[new_number] = x
assert_close(gat(moved, renamed).output[new_number], gat(x, loops).output)
print("renumbered: the same outputs, in the new order")

# %% [markdown]
r"""
## 6 · Two camps, two known members

The task: **of 34 members two are known, the leaders. With whom does each of the other 32 go?** A member's only feature is who it is (a vector with a single 1), so there is nothing to be learned from the members themselves. All there is, is the graph.

Each network has two layers, and each kind its own learning rate. Above all they differ in whom a node looks at:

- **GAT**: along the edges (and at itself), with the score of section 4;
- **full attention**: at everybody, dot products; it never sees the graph;
- **scores set to 0**: the same, and the source's sentence: pairs without an edge get score 0;
- **MLP**: a multi-layer perceptron; every member looks at itself alone.

> **Predict.** Chance is about half. Which of the four are above it?
>
> <details><summary>Answer</summary>
> The GAT, and, by a smaller margin, "scores set to 0". The MLP learns the two that it was told, and guesses the rest. Full attention does not even learn the two: watch its loss, which stays at ln 2 = 0.69, that of guessing.
> </details>
"""

# %% tags=["nbval-ignore-output"]
trained = {}
print("                 right   weight on strangers   loss of the two at the end")
for kind in ("GAT", "full attention", "scores set to 0", "MLP"):
    trained[kind], history = club.train(kind, task)
    right = club.accuracy(trained[kind], task)
    strangers = club.weight_on_strangers(trained[kind], task)
    loss = history.column("loss")[-1]
    print(f"{kind:16} {right:5.2f} {strangers:10.2f} {loss:22.3f}")

# %%
found = {kind: club.accuracy(model, task) for kind, model in trained.items()}
verdict("GAT: at least 8 of 10", found["GAT"] > 0.8, trained=True)
verdict("full attention and the MLP guess",
    max(found["full attention"], found["MLP"]) < 0.65, trained=True)  # fmt: skip
verdict("scores set to 0: worse than the GAT",
    found["scores set to 0"] < found["GAT"] - 0.03, trained=True)  # fmt: skip
verdict("a third or more of its weight lies on strangers",
    club.weight_on_strangers(trained["scores set to 0"], task) > 1 / 3, trained=True)  # fmt: skip

# %%
look = trained["GAT"].look(to_device(task.x), to_device(task.edge_index))
drawing.network(
    task,
    weights=look.weights.mean(0).detach().cpu(),
    guesses=look.logits.argmax(-1).cpu(),
    title="GAT, mean of the heads of the first layer",
)

# %% [markdown]
r"""
Shape: the truth; colour: the guess. A half of a line is as thick as the weight that the member at its end gives to the other. Take it into your hands:
"""

# %%
from lesson_lib.chapters.c10_graph_attention.graph_explorer import GraphExplorer

GraphExplorer(task, trained["GAT"], node=8)

# %% [markdown]
r"""
Member 8 is the one that the GAT gets wrong: it stands between the camps, and met both leaders. *Look:* the bars, its weights, and the class that it is given, with its probability. *Do:* slide "edge" to 8 – 33 and press "cut this edge". *Look:* the other weights grow, since they still sum to 1, and the probability moves. *Do:* press "put all back", slide "node" to 11, who met nobody but member 0, and cut that edge. *Look:* it sees itself alone. *Do:* put all back, and slide "weights" from the mean to single heads. *Look:* hardly any difference; the next part asks why.

### The stored run

Ten seeds and more tasks. **Club**: as above; the club has no member to spare for choosing rates, so the learning rates were chosen on generated clubs of the same size. **Others known**: two members are drawn for each seed in the place of the leaders. **Blocks**: a generated graph of 240 nodes in four classes, with five known in each, in which seven of ten edges stay within a class. There are four more rows: GATv2; "GAT, weights held even", which the next part explains; **dot products** along the edges; and the **GCN**, a graph network without attention,
whose weights are *fixed*: $1 / \sqrt{d_i d_j}$, where $d$ is the number of a node's edges, its self-loop among them.
"""

# %%
stored = results("club")["rows"]
figures.kinds(stored, {"club": 1 / 2, "club, others known": 1 / 2, "blocks": 1 / 4})


# %%
def in_stored(rows, column="accuracy", **wanted):
    """A column of the stored rows that fit, a number for each seed."""
    return [row[column] for row in rows if wanted.items() <= row.items()]


points = [row for row in stored if row["part"] == "point"]
for name in ("club", "club, others known", "blocks"):
    means = {
        kind: fmean(in_stored(points, task=name, kind=kind)) for kind in club.KINDS
    }
    print(f"{name}:", ", ".join(f"{kind} {share:.2f}" for kind, share in means.items()))

# %% [markdown]
r"""
- **Whoever keeps to the edges finds nearly everybody**: 94 or 95 of 100 in the club, whatever the score, additive or dot product. Whoever does not look at the graph guesses.
- **The GCN is as good as the GAT**, and it has no attention. We come back to that.
- **Which two are known matters more than which of the kinds that keep to the edges**: with others in the place of the leaders the GAT finds between 69 and 97 of 100, seed by seed.
- **Scores set to 0**: in the club 88 of 100, so the slip is not fatal there. Training has worked around it: the scores of pairs *with* an edge have grown until half of the weight lies on them. On the blocks, 240 nodes without features, 96 % of the weight stay with strangers, and the network guesses: even its loss on the known nodes stays at ln 4, that of guessing.

The last two in numbers:
"""

# %%
for name in ("club", "blocks"):
    before, after = (
        fmean(in_stored(points, column, task=name, kind="scores set to 0"))
        for column in ("strangers_start", "strangers")
    )
    print(
        f"{name:6} weight on strangers: {before:.2f} before training, {after:.2f} after"
    )
elsewhere = in_stored(points, task="club, others known", kind="GAT")
print(f"GAT, others known: {min(elsewhere):.2f} to {max(elsewhere):.2f}")

# %% [markdown]
r"""

### Do the weights matter?

The GAT computes its weights, the GCN's are fixed, and both are equally good. What, then, has attention learned? Count over how many nodes each node spreads its weights: e to the power of their entropy, $-\sum_j w_j \ln w_j$. Five equal weights give 5, a single weight of 1 gives 1, and anything in between lies in between. In the picture a mark for each node and head; on the diagonal all that may be seen get the same:
"""

# %%
figures.evenness(
    {
        "before": club.start("GAT", task).look(to_device(task.x), to_device(task.edge_index)).weights.detach().cpu(),
        "after": look.weights.detach().cpu(),
    },
    joined,
)  # fmt: skip

# %% [markdown]
r"""
Before training, nearly equal weights; after training, nearly equal weights. In the picture of the stored run, "GAT, weights held even" has scores that are held at 0 throughout, so that every neighbour counts the same: it is as good. **Here the graph did the work, not the attention**: after this short training the picture with the thick and thin lines above shows little more than how many friends each member has.

It is not always so. **Opposites** are the graphs of the next section: there most edges lead to the *other* class, features say something, and a node had better not treat itself like its neighbours. Do learned weights beat even ones, seed by seed? By dot products they do. The GAT's own do not; on the blocks they are behind in every seed:
"""

# %%
for name in ("club", "blocks", "opposites"):
    even = in_stored(stored, part="even", task=name)
    print(f"{name:10} even {fmean(even):.2f}", end="")
    for kind in ("dot products", "GAT"):
        learned = in_stored(points, task=name, kind=kind)
        ahead = sum(a > b for a, b in zip(learned, even, strict=True))
        print(f";  {kind} {fmean(learned):.2f}, ahead in {ahead} of 10", end="")
    print()

# %% [markdown]
r"""

## 7 · When edges mislead

Edges say *who* belongs together. In the club that meant: who thinks alike. It need not. Among buyers and sellers, or in a dance, edges join those who are *unlike*. The name for it is **heterophily** (its opposite is homophily).

Generated graphs, in which the share of edges within a class is chosen: from 0.1 (nearly all edges lead to the other class) to 0.9. Nodes have features that tell their class, with as much noise as signal, so that an MLP can judge each node by itself. There are 240 nodes, ten of each class are known, and there are three seeds.

> **Predict.** Two classes. At which share is the graph of no use at all: 0.1, 0.5 or 0.9?
>
> <details><summary>Answer</summary>
> 0.5: there edges say nothing. At 0.1 they say much, if one listens: "my neighbours are what I am not". Whether GAT can listen so is measured below.
> </details>
"""

# %%
shares_of = [row for row in stored if row["part"] == "within"]
figures.over_homophily(
    [row for row in shares_of if row["n_classes"] == 2], chance=1 / 2
)

# %%
figures.over_homophily(
    [row for row in shares_of if row["n_classes"] == 4], chance=1 / 4
)

# %% [markdown]
r"""
Read the first picture from right to left. At 0.9 neighbours are friends, and the graph networks are far ahead of the MLP, which is at 0.70 throughout, since it sees no edge. At 0.5 a neighbour is of either class, and they are *behind* it: the mean of the neighbours says nothing and drowns what the node knows by itself. At 0.1 they are ahead again, with two classes: "what my neighbours are, I am not" tells nearly as much as its opposite (0.92 for the GAT). Weights are never negative; it is the projection that learns to turn the message round.

With four classes it does not. At 0.1 a neighbour only makes one class of four less likely; at 0.3 it says next to nothing, since 0.25 would be by lot. At both, both graph networks are worse than the MLP that looks at no edge. So edges say *who*; whether *who* means *alike* is for the task to say.
"""


# %%
def at_share(kind, share, n_classes):
    """Mean accuracy with that share of edges within a class."""
    return fmean(in_stored(shares_of, kind=kind, within=share, n_classes=n_classes))


verdict("2 classes, 0.5: GAT and GCN are behind the MLP",
    max(at_share(kind, 0.5, 2) for kind in ("GAT", "GCN")) < at_share("MLP", 0.5, 2) - 0.03)  # fmt: skip
verdict("2 classes, 0.1: ahead by more than 15 points",
    min(at_share(kind, 0.1, 2) for kind in ("GAT", "GCN")) > at_share("MLP", 0.1, 2) + 0.15)  # fmt: skip
verdict("4 classes, 0.1: behind by 9 points and more",
    max(at_share(kind, 0.1, 4) for kind in ("GAT", "GCN")) < at_share("MLP", 0.1, 4) - 0.09)  # fmt: skip

# %% [markdown]
r"""

## 8 · Claims

What S3 says about graphs, with the verdicts that the cells compute.
"""

# %% [markdown]
r"""
"One kind of graph network", says S3. Which one? Compute GAT by its formula, node by node, and compare what one projection gives with three ways to look along the edges:
"""


# %%
def gat_by_hand(layer, features, edge_index):
    """The paper's formula, node by node; one head, and no bias."""
    z, rows = layer.project(features), []
    for i in range(len(features)):
        near = edge_index[0, edge_index[1] == i]
        scores = layer.score.a_query[0] @ z[i] + z[near] @ layer.score.a_key[0]
        weights = F.leaky_relu(scores, 0.2).exp()
        rows.append(weights / weights.sum() @ z[near])
    return torch.stack(rows)


_ = torch.manual_seed(0)
one_head = GraphAttention(16, 8)
z = one_head.project(x).detach()
with torch.no_grad():
    by_hand = gat_by_hand(one_head, x, loops)
    ways = {
        "GAT's score, with self-loops": one_head(x, loops).output,
        "GAT's score, without": one_head(x, task.edge_index).output,
        "dot products, with self-loops": attend_edges(*[z[:, None]] * 3, loops).output[:, 0],
    }  # fmt: skip
    off = {way: float((output - by_hand).abs().max()) for way, output in ways.items()}
print({way: "the same" if far < 1e-5 else "another" for way, far in off.items()})

# %% tags=["claim:graph-1"]
everyone = torch.ones(n, n, dtype=torch.bool)
favourites = {
    "GAT": one_head.dense(x, everyone).weights[0].argmax(-1),
    "dot": attend(z, z, z).weights.argmax(-1),
}
pair = torch.tensor([[0, 1], [1, 0]])  # and a third node, without edges
alone = GraphAttention(16, 8, bias=False)(x[:3], pair).output[2]
along, under_mask = one_head(x, loops).output, one_head.dense(x, joined).output
claim("graph-1", {
    "only along the edges: the numbers of the whole table under a mask": torch.allclose(
        along, under_mask, atol=1e-5),
    "with GAT's own score and self-loops it is GAT": off["GAT's score, with self-loops"] < 1e-5,
    "without self-loops it is not": off["GAT's score, without"] > 0.1,
    "with dot products it is another network": off["dot products, with self-loops"] > 0.1,
    "among all, GAT's nodes have one favourite, the same for all": (
        favourites["GAT"] == favourites["GAT"][0]).all(),
    "with dot products not: GAT cannot do what they do": len(favourites["dot"].unique()) > 1,
    "a node without edges gets 0": (alone == 0).all(),
    "where a softmax over nothing but -inf gives nan": torch.full((3,), -torch.inf)
    .softmax(0).isnan().all(),
})  # fmt: skip


# %%
for name in ("dot products", "scores set to 0"):
    placed = torch.tensor(in_stored(points, kind=name, task="club"))
    print(f"{name:16} {placed.mean():.2f} of the members placed rightly")

# %% tags=["claim:graph-2"]
even = attend(0 * x, other, x, score=zeroed).weights  # all scores are 0
by_edges = attend_edges(x[:, None], other[:, None], x[:, None], loops).output[:, 0]
right, wrong = with_minus_infinity.output, with_zero.output
left = in_stored(points, "strangers", kind="scores set to 0", task="club")
lost = in_stored(points, kind="scores set to 0", task="blocks")
claim("graph-2", {
    "score 0, and all others 0, too: 84 % of the weight goes to strangers": abs(
        (even * ~joined).sum(-1).mean() - 0.836) < 0.001,
    "with scores drawn at random, the outputs are off by half and more": (wrong - right).norm()
    > 0.5 * right.norm(),
    "with a score of -inf strangers have weight 0, exactly": (
        with_minus_infinity.weights[~joined] == 0).all(),
    "and that is what not computing them gives": torch.allclose(by_edges, right, atol=1e-5),
    "stored, trained so on the club: a third of the weight and more goes to strangers": min(left)
    > 1 / 3,
    "on the blocks, 240 nodes: chance, in every seed": set(lost) == {0.25},
    "along the edges alone: eight in ten, in every seed": min(
        in_stored(points, kind="dot products", task="blocks")) > 0.8,
})  # fmt: skip

# %% [markdown]
r"""
Does an edge say what is *relevant*? Three questions to the data, and no training. How many edges of the club lead to the other camp, and how many pairs of one camp have met? What do a node's neighbours say about its class, when their features are added up? And can equal weights pick the one neighbour, of four, who is marked?
"""

# %%
crossing = int((task.y[task.edge_index[0]] != task.y[task.edge_index[1]]).sum()) // 2
same_camp = (task.y[:, None] == task.y).triu(1)
met = int((same_camp & joined).sum())
print(f"{crossing} of 78 edges lead to the other camp;", end=" ")
print(f"{met} of {int(same_camp.sum())} pairs of one camp have met")
told = {}
for share in (0.9, 0.5, 0.1):
    graph = data.opposites(0, within=share)
    says = from_edges(graph.edge_index, len(graph.y)).float() @ graph.x
    told[share] = float((says.argmax(1) == graph.y).double().mean())
    print(f"edges within a class {share}: neighbours are right {told[share]:.2f}")
by_itself = float((graph.x.argmax(1) == graph.y).double().mean())
print(f"a node's own features: {by_itself:.2f}")

# %%
star = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
worth = torch.tensor([0.0, 10.0, 20.0, 30.0, 40.0])[:, None, None]
picked, averaged = [], []
for marked in (1, 2, 3, 4):
    mark = torch.zeros(5, 1, 1)
    mark[marked] = 1.0
    asks_for_it = torch.full((5, 1, 1), 30.0)
    picked.append(float(attend_edges(asks_for_it, mark, worth, star).output[0]))
    averaged.append(float(attend_edges(0 * mark, mark, worth, star).output[0]))
print("marked: node 1, 2, 3, 4")
print("attention:", [round(p) for p in picked], " equal weights:", averaged)

# %%
print("two classes; edges within a class     0.1    0.5    0.9")
for name in ("GAT", "MLP"):
    means = [
        torch.tensor(in_stored(shares_of, kind=name, n_classes=2, within=share)).mean()
        for share in (0.1, 0.5, 0.9)
    ]
    print(f"{name:34}", *(f"{mean:6.2f}" for mean in means))

# %% tags=["claim:graph-3"]
trained_at = {
    (name, classes, share): in_stored(shares_of, kind=name, n_classes=classes, within=share)
    for name in ("GAT", "MLP") for classes, share in ((2, 0.1), (2, 0.5), (4, 0.1))
}  # fmt: skip
with_even_weights = in_stored(stored, part="even", task="club")
claim("graph-3", {
    "who, not how much: equal weights say 25, whoever is marked": averaged == [25.0] * 4,
    "attention picks the marked one": [round(p) for p in picked] == [10, 20, 30, 40],
    "in the club edges are enough: with equal weights 30 of 32": set(with_even_weights) == {0.9375},
    "though of 272 pairs of one camp 67 have met": (met, int(same_camp.sum())) == (67, 272),
    "edges at random mislead: GAT is worse than a network that sees none": max(
        trained_at["GAT", 2, 0.5]) < min(trained_at["MLP", 2, 0.5]),
    "edges to other classes, too, where there are four": max(trained_at["GAT", 4, 0.1])
    < min(trained_at["MLP", 4, 0.1]),
    "and where there are two, neighbours are wrong 8 times in 10": told[0.1] < 0.2,
    "which GAT learns to turn round: better than without edges": min(trained_at["GAT", 2, 0.1])
    > max(trained_at["MLP", 2, 0.1]),
})  # fmt: skip

# %% [markdown]
r"""
## 9 · Three wrong ideas worth having once

**"The largest weight shows the most important friend."** If so, cutting that edge must change a member's probabilities more than cutting any other of its edges. Take the network whose learned weights do matter, dot products on the opposites. For every fourth node cut each of its edges by itself, and count the nodes of which that is true:
"""


# %%
@torch.no_grad()
def moved_by_cutting(model, task, node, other):
    """How far the node's probabilities move when its edge with `other` is cut."""
    ends = torch.tensor([[node, other], [other, node]]).to(task.edge_index)
    gone = (task.edge_index[:, None] == ends[..., None]).all(0).any(0)
    before = model(task.x, task.edge_index).softmax(-1)[node]
    after = model(task.x, task.edge_index[:, ~gone]).softmax(-1)[node]
    return (before - after).abs().sum().item()


# %% tags=["nbval-ignore-output"]
unlike = to_device(data.opposites(0))
by_dots, _ = club.train("dot products", data.opposites(0))
given = by_dots.look(unlike.x, unlike.edge_index).weights.mean(0).detach()
asked, first, by_lot = 0, 0, 0.0
for i in range(0, len(unlike.y), 4):
    friends = unlike.edge_index[0, unlike.edge_index[1] == i]
    if len(friends) > 1:
        effects = [moved_by_cutting(by_dots, unlike, i, int(j)) for j in friends]
        first += effects.index(max(effects)) == int(given[i, friends].argmax())
        asked, by_lot = asked + 1, by_lot + 1 / len(friends)
print(f"the edge of largest weight moves most: {first} of {asked} nodes,", end=" ")
print(f"an edge drawn by lot: {by_lot:.0f}")

# %%
verdict("the edge of largest weight moves fewer than half of the nodes most",
    first < asked / 2, trained=True)  # fmt: skip

# %% [markdown]
r"""
More often than an edge drawn by lot, and yet for most nodes another edge matters more. A weight says how much is *taken* from a neighbour. What that does depends on what is taken, on the other neighbours, and on the layers above. To know what an edge does, cut it.

**"A node without neighbours gets the mean of all, or nan."** With a careless softmax it does: over a row of $-\infty$ it gives nan, and with scores of $-10^9$ in place of $-\infty$ it gives the mean of everybody. Ours gives 0, and the layer's bias stands alone:
"""

# %%
nobody = torch.zeros(1, 3, dtype=torch.bool)
three = torch.tensor([[1.0], [2.0], [6.0]])
nothing = torch.zeros(1, 1)
careless = torch.full((1, 3), -1e9).softmax(-1) @ three
show(torch.full((1, 3), -torch.inf).softmax(-1), careless)
show(attend(nothing, three, three, mask=nobody).output)

# %% [markdown]
r"""
**"An edge from $j$ to $i$ means that $j$ looks at $i$."** It is the other way round: the message flows along the arrow, so the *target* looks. In the club nobody notices, since all edges go both ways. Turn a one-way graph round, and who is informed changes:
"""

# %%
one_way = torch.tensor([[1, 2, 3], [0, 0, 0]])  # 1, 2, 3 -> 0
for name, some_edges in {"as it is": one_way, "turned round": one_way.flip(0)}.items():
    sees = from_edges(some_edges, 4).sum(-1).tolist()
    print(f"{name:13} nodes 0 to 3 look at so many: {sees}")

# %% [markdown]
r"""
## 10 · Exercises

Open [exercises/10_graph_attention](exercises/10_graph_attention.ipynb). If you do only one, write softmax over the edges of each target.

## 11 · Summary

- A graph is a mask: row = target, which looks; column = source. Attention along edges is `attend` with that mask; people who work with graphs call it message passing.
- What must be 0 for a stranger is the weight. A score of 0 leaves strangers most of the weight where edges are few.
- Edge by edge, memory and time grow with the edges and not with $n^2$, and the numbers are the same. A node without neighbours gets exactly 0; self-loops are there only where they are put.
- A GAT has one projection and the score $\mathrm{LeakyReLU}(a_q \cdot z_i + a_k \cdot z_j)$, by which all queries rank keys alike; GATv2 mends that. With dot products it is another GNN.
- The window of radius 1 is a path graph, full attention the complete graph with self-loops, the causal mask a graph with arrows to the right.
- From two known members, networks that keep to the edges find 94 of 100 of a club; full attention and an MLP guess. A GCN with fixed weights and a GAT with even ones are as good as the GAT, and on the blocks even weights are better: there the graph did the work.
- Edges say who, not what that means. With two classes unlike neighbours tell nearly as much as like ones; mixed ones do harm, and with four classes unlike ones, too.

**Sources.** Zachary 1977, *An information flow model for conflict and fission in small groups*, as networkx has it; Veličković et al. 2017 (arXiv:1710.10903, GAT); Brody, Alon & Yahav 2021 (arXiv:2105.14491, GATv2); Kipf & Welling 2016 (arXiv:1609.02907, GCN); Gilmer et al. 2017 (arXiv:1704.01212, message passing);
Holland, Laskey & Leinhardt 1983 (block models); the course's own source S3.

**Next**: lesson [11](11_efficient_attention.ipynb) asks what else has been tried to make attention cheaper, and what it costs.
"""
