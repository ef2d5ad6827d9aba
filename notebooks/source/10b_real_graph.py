# %% [markdown]
r"""
# 10b · Does attention help on a real graph?

Nine words, in alphabetical order, are all that a network is told of a Python function. Which chapter of Python's manual describes it?

**Afterwards you can** split a graph's nodes so that nothing leaks; say with a control whether words, edges or attention did the work; batch small graphs and pool them.

**Time** about 45 minutes. **You need** part [10a](10a_graph.ipynb). **Exercises**: [exercises/10_graph_attention](exercises/10_graph_attention.ipynb).

<details><summary>中文摘要</summary>
图是 Python 标准库:两千多个函数和类,边是“谁用到谁”,文字是说明中的词。按模块划分数据后,邻居的词很有用,而学来的注意力权重并不比固定的权重好。边打乱一半以后,图不再有用;最后把许多小图并成一个,再按图求平均。
</details>
"""

# %%
from textwrap import shorten

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
    words = shorten(graph.text(graph.names[j]), 60, placeholder=" ...")
    print(f"{graph.names[j]}: {words}")

# %% [markdown]
r"""
It is `statistics.stdev`. Its own words say little; the three functions that it uses say more. Who listens to neighbours may know.

## 1 · A graph with text

The nodes are functions, methods and classes of Python's standard library that have a docstring, a text that says what they do. Where one's source uses another, or a class holds a method, an edge joins the two, both ways. A node's row of $x$ marks the words of its docstring; modules' names are left out. Its class is its module's chapter in the manual, one of seven.
"""

# %%
n = len(graph.y)
same = (graph.y[source] == graph.y[target]).float().mean()
print("x:", tuple(graph.x.shape), "· edges:", len(source) // 2)
print(f"edges that stay within a chapter: {same:.0%}")
real_graph_figures.where_edges_lead()

# %% [markdown]
r"""
Like joins like, least in "files", where 87 of 100 edges stay. Such a graph is called **homophilous**.

## 2 · A fair split

Some nodes are for training, some for validation, which ends the training, the others for the test. Chapters differ in size, so let each count the same: the score is the share of right answers in a chapter, averaged over the seven. A constant answer has 1/7 = 14 %.

Shall we deal nodes one by one, by lot? Or **family** by family: all nodes of a module or package on one side, and modules that repeat each other's sentences (gzip, bz2, lzma) together?
"""

# %%
predict("dealt_by_lot")

# %%
real_graph_figures.two_deals()

# %% [markdown]
r"""
**"It never trained on these nodes, so the test is fair."** Dealt one by one, GCN finds more than 90 %; by families, some 50 %. A test node's sisters were in training, with their module's phrases, and often joined to it. The first GCN knows modules, not chapters. So we deal families:
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

One network of two layers; `make` builds a layer of one kind, and only that differs. (ELU is a ReLU with a round corner.)
"""

# %%
show_source(real_graph.Reader)

# %% [markdown]
r"""
- **words alone**: $Wx + b$, GCN's numbers without neighbours.
- **GCN**: the neighbours' $Wx$, summed with the fixed weights of 10a.
- **GAT**, **GATv2**: learned weights, by the scores of 10a.
- **GAT of torch_geometric**: the same from a public library, begun with our GAT's weights.
- **dot products**: learned weights, from queries and keys made of $Wx$.

All hear themselves, too (self-loops). Train two of them:
"""

# %% tags=["nbval-ignore-output"]
readers, scores = {}, {}
for kind in ("words alone", "GAT"):
    readers[kind], _ = train(kind, parts, graph.edge_index)
    scores[kind] = score(readers[kind], graph.edge_index, parts["test"])
    print(f"{kind:11} finds {scores[kind]:.0%}")

# %%
assert quick() or scores["GAT"] > scores["words alone"] + 0.1
x, edges = to_device((graph.x, self_loops(graph.edge_index, n)))
for kind, reader in readers.items():
    said = graph.chapters[reader(x, edges)[node].argmax()]
    print(f"stdev, by {kind}:", "right" if said == "numbers" else "wrong")

# %% [markdown]
r"""
Its own words place stdev wrongly, its neighbours' rightly. In all, they bring more than ten points. Is that the attention?
"""

# %%
predict("even_or_learned")

# %%
real_graph_figures.networks()

# %% [markdown]
r"""
Words alone find some 35 % in each split, all that hear neighbours 45 to 57 %. GCN, with its fixed weights, is among them. **The graph did the work, not the attention.** (The two GATs give the same numbers.)

## 4 · Edges that mislead

Spoil the graph: cut a share of the edges in two and join the halves by lot. Each node keeps about its number of neighbours, but they are strangers.

One network more, **own words beside**: dot products, and a second matrix $W'x$ of the node itself, added to the mixture.
"""

# %%
predict("wrong_edges")

# %%
real_graph_figures.misleading()

# %% [markdown]
r"""
With half of the edges shuffled, neighbours are worth about nothing; with all, they do harm.

**"Attention drops the edges that mislead."** It could: a node may give all weight to itself. An even weight is 1 over the number of nodes that are heard; these are the weights on the shuffled graph:
"""

# %%
real_graph_figures.where_weights_lie()

# %% [markdown]
r"""
GAT's stay even. Dot products do choose: more than three times the even weight for the node itself, half of it for nodes of another chapter. They lose less, and still lose: something of each stranger comes in. A path for the node's own words, beside the mixture, stays near words alone to the end; on the good graph it gains nothing.

## 5 · Many small graphs

Chemists ask about whole graphs. A molecule is a graph of atoms, and its edges are bonds. Is an N bound to an O?
"""

# %%
for atoms in ("CNO", "NCO"):
    x, bonds, _ = molecules.chain(atoms)  # x: a column each for C, N, O
    bound = molecules.is_bound(x, bonds).tolist()
    print(atoms, "counts", x.sum(0).tolist(), "bound", bound)
show_source(molecules.is_bound)

# %% [markdown]
r"""
Both have the same atoms, so no count tells them apart. One layer with weights set by hand does: an O that hears an N gets $1 + 1 - 1 = 1$, all others here 0. To take many molecules at once, put them side by side: one graph, whose parts are not joined.
"""

# %% [markdown] tags=["exercise:batch_graphs"]
# Number the nodes through.

# %%
join = yours("batch_graphs")  # ours, until yours has passed
some = molecules.twins(100)  # 100 pairs: equal atoms, N bound to O and not
n_atoms = torch.tensor([len(one.x) for one in some])
n_bonds = torch.tensor([one.edge_index.shape[1] for one in some])
one_graph = join(n_atoms, n_bonds, torch.cat([one.edge_index for one in some], 1))
x = torch.cat([one.x for one in some])
bound = molecules.is_bound(x, one_graph)
print(len(x), "atoms, edges", tuple(one_graph.shape), "bound", bound.sum().item())

# %% [markdown]
r"""
Each molecule needs one answer. **Pooling** makes one row of its nodes' rows.
"""

# %% [markdown] tags=["exercise:pool_mean"]
# Write the mean for each graph.

# %%
pool = yours("pool_mean")
owner = torch.arange(len(some)).repeat_interleave(n_atoms)  # atom -> molecule
counted = pool(x, owner, len(some))
heard = pool(bound.float()[:, None], owner, len(some))
joined = torch.tensor([one.joined for one in some])
assert torch.allclose(counted[0::2], counted[1::2])
assert torch.equal(heard[:, 0] > 0, joined)
print(len(some), "molecules; right:", ((heard[:, 0] > 0) == joined).sum().item())

# %% [markdown]
r"""
The mean of atoms is the same for both of a pair; the mean of `bound` tells all 200. Here edges are everything. (A mean forgets how many atoms there were; a sum does not.)

## In real work

PyTorch Geometric, which is not installed here:

```python
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, global_mean_pool

# graphs: a list of torch_geometric.data.Data(x=..., edge_index=...)
conv = GATv2Conv(3, 8, heads=4)  # adds self-loops by itself
for batch in DataLoader(graphs, batch_size=64, shuffle=True):
    hidden = conv(batch.x, batch.edge_index)  # one large graph
    pooled = global_mean_pool(hidden, batch.batch)
```

Cora, a public graph of papers, comes as two files; give their texts, `open("cora.content").read()` and `open("cora.cites").read()`, to the function below. The bug that people meet: a citation is listed once, so without `flip` one of the two papers hears nothing of the other.
"""

# %%
show_source(read_citations)

# %%
tiny = read_citations("p1 1 0 ML\np2 0 1 DB\np3 1 1 ML\n", "p1 p2\np1 p3\n")
print(tiny.x.shape, tiny.y.tolist(), tiny.edge_index.tolist())

# %% [markdown]
r"""
## Nine words once more

stdev's own words fit any chapter; its neighbours placed it. That took a graph in which like joins like, and hardly any attention.

**To remember.** First ask what the words know, then what the edges add, then what attention adds.

- Deal families, not nodes: else relatives give the answer away.
- Three controls: words alone, fixed weights, shuffled edges.
- Attention did not drop bad edges; a path beside it kept the node's own words.
- A batch of graphs is one graph whose parts are not joined.

**Sources.** Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491); Shchur et al. 2018 on splits (arXiv:1811.05868); the standard library of Python 3.11. Protocol, rates, seeds: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: [11](11_efficient_attention.ipynb): can attention be cheaper?
"""
