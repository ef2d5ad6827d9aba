# %% [markdown]
r"""
# 10b · Does attention help on a real graph?

Nine words, in alphabetical order, are all that a network is told of a Python function. Which chapter of Python's manual describes it?

**Afterwards you can** split a graph's nodes so that nothing leaks; say with a control whether words, edges or attention did the work; batch small graphs and pool them.

**Time** about 45 minutes. **You need** part [10a](10_graph_attention.ipynb). **Exercises**: [exercises/10_graph_attention](exercises/10_graph_attention.ipynb).

<details><summary>中文摘要</summary>
图是 Python 标准库:两千多个函数和类,边是“谁用到谁”,文字是说明中的词。按模块划分数据后,邻居的词很有用,而学来的注意力权重并不比固定的权重好。边打乱一半以后,图不再有用;最后把许多小图并成一个,再按图求平均。
</details>
"""

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c10_graph_attention import (
    library,
    molecules,
    real_graph,
    real_graph_figures,
)
from lesson_lib.chapters.c10_graph_attention.citations import read_citations
from lesson_lib.chapters.c10_graph_attention.experiments.real_graph import (
    score,
    train,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.graphs import self_loops
from lesson_lib.show import show_source

_ = torch.manual_seed(0)
warm_up()

# %%
graph = library.load()
print(graph.text("statistics.stdev").replace(" ", "\n"))

# %%
predict("nine_words")

# %%
node = graph.number("statistics.stdev")
source, target = graph.edge_index
for j in source[target == node].tolist():
    print(graph.names[j], "·", graph.text(graph.names[j])[-24:])

# %% [markdown]
r"""
It is `statistics.stdev`. Its own words say little. The three functions that it uses (here with the last of their words) say more. Who listens to neighbours may know.

## 1 · A graph with text

Each function, method and class of 57 modules is a **node**, if it has a docstring: the text that says what it does. Where one's source uses another, or a class holds a method, an **edge** joins the two, both ways. A node's features are words, and no module's name is among them. Its class is one of seven chapters.
"""

# %%
n = len(graph.y)
same = (graph.y[source] == graph.y[target]).float().mean()
print(n, "nodes,", len(source) // 2, "edges,", len(graph.words), "words")
print(f"edges that stay within a chapter: {same:.0%}")
real_graph_figures.where_edges_lead()

# %% [markdown]
r"""
A graph whose edges mostly join nodes of one class is called **homophilous**: like joins like. This one is.

## 2 · A fair split

Some nodes are for training, some for **validation**, which chooses when training ends, the others for the test. Chapters differ in size, so let each count the same: the score is the share of right answers in each chapter, averaged over the seven. A constant answer has 1/7 = 14 %.

How should nodes be dealt? One by one, by lot? Or **family** by family: all functions of a package on one side, and modules that repeat each other's sentences (gzip, bz2, lzma) together?
"""

# %%
predict("dealt_by_lot")

# %%
real_graph_figures.two_deals()

# %% [markdown]
r"""
**"The network never trained on these nodes, so the test is fair."** Dealt one by one, GCN finds more than 90 %, by families some 50 %. Nearly every test node has sisters in training, with the same module's phrases, often joined to it. That network knows modules, not chapters. Ask of every split: could the answer come in through a relative?

From here on we deal families.
"""

# %%
parts = library.split(graph)
for name, nodes in parts.items():
    families = graph.family[nodes].unique()
    print(f"{name:10} {len(families):2} families, {nodes.sum():4} nodes")
assert not set(graph.family[parts["training"]].tolist()) & set(
    graph.family[parts["test"]].tolist()
)

# %% [markdown]
r"""
## 3 · Words, edges, attention

One network, and what differs is its layer:
"""

# %%
show_source(real_graph.Reader)

# %% [markdown]
r"""
- **words alone**: each layer is $Wx + b$. It has GCN's number of weights and hears no neighbour.
- **GCN**: sums neighbours' $Wx$ with fixed weights, $1/\sqrt{d_i d_j}$.
- **GAT**, **GATv2**: weights by their scores, as in 10a.
- **dot products**: queries and keys made of $Wx$, along the edges by `attend_edges`.

All nodes hear themselves, too. Train the first and the third:
"""

# %% tags=["nbval-ignore-output"]
readers, scores = {}, {}
for kind in ("words alone", "GAT"):
    readers[kind], _ = train(kind, parts, graph.edge_index)
    scores[kind] = score(readers[kind], graph.edge_index, parts["test"])
    print(f"{kind:11} finds {scores[kind]:.0%}")

# %%
assert quick() or scores["GAT"] > scores["words alone"] + 0.08
x, edges = to_device((graph.x, self_loops(graph.edge_index, n)))
for kind, reader in readers.items():
    said = graph.chapters[reader(x, edges)[node].argmax()]
    print(f"stdev, by {kind}:", "right" if said == "numbers" else "wrong")

# %% [markdown]
r"""
By its own words stdev is placed wrongly; with its neighbours' it is a matter of numbers. They bring some 15 points. Is it the attention?
"""

# %%
predict("even_or_learned")

# %%
real_graph_figures.networks()

# %% [markdown]
r"""
Words alone: some 35 % in each split. All networks that hear neighbours: 46 to 57 %. GCN, whose weights are fixed, is among them; the kinds differ less than the splits do. **The graph did the work, not the attention.** (PyTorch Geometric's GAT, begun with our weights, gives our numbers.)

## 4 · Edges that mislead

Now spoil the graph: cut edges in two and join the halves by lot. Each node keeps about its number of neighbours, and they are strangers.
"""

# %%
predict("wrong_edges")

# %%
real_graph_figures.misleading()

# %% [markdown]
r"""
With half of the edges shuffled, hearing neighbours is worth nothing. With all shuffled it does harm: some 25 to 30 %, where words alone have 35.

**"Attention drops the edges that mislead."** It could: a node may give all weight to itself. See what it does with shuffled edges. An even weight is one divided by the number of nodes that are heard.
"""

# %%
real_graph_figures.where_weights_lie()

# %% [markdown]
r"""
GAT's weights stay even. Dot products do choose: three times the even weight for the node itself, half of it for nodes of another chapter. They lose least, and still lose: weights above 0 that sum to 1 can only mix. What helps is a second matrix for the node's own words *beside* the mixture. That network ("own words beside") stays near words alone to the end; on the good graph it is not ahead.

## 5 · Many small graphs

Chemists ask about whole graphs. A molecule is a graph of atoms, and its edges are bonds. Does an N hang on an O?
"""

# %%
first, second = molecules.chain("CNO"), molecules.chain("NCO")
print("atoms C, N, O:", first.x.sum(0).tolist(), second.x.sum(0).tolist())

# %% [markdown]
r"""
The **twins** C–N–O and N–C–O have the same atoms, so no count of atoms tells them apart. One layer does: let each node sum its neighbours, and ask each O whether it hears an N. To take many molecules at once, put them side by side as one graph whose parts are not joined.
"""

# %% [markdown] tags=["exercise:batch_graphs"]
# Number the nodes through.

# %% [markdown]
r"""
Each molecule needs one answer: **pooling** makes one row of all its nodes' rows.
"""

# %%
predict("two_copies")

# %% [markdown] tags=["exercise:pool_mean"]
# Write the mean for each graph.

# %%
join, pool = yours("batch_graphs"), yours("pool_mean")
some = molecules.twins(100)  # 200 molecules of 5 to 9 atoms, N bound to O or not
atoms = torch.tensor([len(one.x) for one in some])
bonds = torch.tensor([one.edge_index.shape[1] for one in some])
one_graph = join(atoms, bonds, torch.cat([one.edge_index for one in some], 1))
x = torch.cat([one.x for one in some])
owner = torch.arange(len(some)).repeat_interleave(atoms)
counted = pool(x, owner, len(some))
heard = pool(molecules.is_bound(x, one_graph).float()[:, None], owner, len(some))
joined = torch.tensor([one.joined for one in some])
assert torch.allclose(counted[0::2], counted[1::2])
assert torch.equal(heard[:, 0] > 0, joined)
print(
    f"{len(some)} molecules, {len(x)} atoms; right: {((heard[:, 0] > 0) == joined).sum()}"
)

# %% [markdown]
r"""
Twins have equal means of atoms; the pooled layer tells all 200. Here no words help, and edges are everything.

**"A mean knows how many atoms there are."** It does not: two copies have the mean of one. Where number matters, take the sum.

## In real work

PyTorch Geometric (not installed here) has all of it:

```python
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, global_mean_pool

conv = GATv2Conv(3, 8, heads=4)  # adds self-loops by itself
for batch in DataLoader(graphs, batch_size=64, shuffle=True):
    hidden = conv(batch.x, batch.edge_index)  # one large graph
    pooled = global_mean_pool(hidden, batch.batch)
```

Cora, a public graph of papers, comes as two texts. With the files, call this with what `open("cora.content").read()` and `open("cora.cites").read()` give. The bug that people meet: each citation is listed once, so without `flip` only one of the two papers hears the other.
"""

# %%
show_source(read_citations)

# %%
tiny = read_citations("p1 1 0 ML\np2 0 1 DB\np3 1 1 ML\n", "p1 p2\np1 p3\n")
print(tiny.x.shape, tiny.y.tolist(), tiny.edge_index.tolist())

# %% [markdown]
r"""
## Nine words once more

stdev's words fit any chapter. Its three neighbours named it, with even weights as well as with learned ones. Had they been drawn by lot, they would have drowned it.

**To remember.** First ask what the words know, then what the edges add, then what attention adds.

- Deal families, not nodes; or the test is about relatives.
- The controls: words alone, fixed weights, shuffled edges.
- Attention mixes what edges bring. It rarely cancels bad edges; a path for the node itself does.
- A batch of graphs is one graph whose parts are not joined. A mean over nodes forgets their number.

**Sources.** Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491); Shchur et al. 2018 on splits (arXiv:1811.05868); the standard library of Python 3.11.

**Next**: [11](11_efficient_attention.ipynb): can attention be cheaper?
"""
