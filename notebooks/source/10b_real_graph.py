# %% [markdown]
r"""
{title}

Nine words, in alphabetical order, are what a network gets of a Python function. Which chapter of Python's manual describes it?

**Afterwards you can** split a graph's nodes so that no label leaks; say with a control whether words, edges or attention did the work; batch small graphs and pool them.

{about}

<details><summary>中文摘要 · Chinese</summary>
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
It is `statistics.stdev`. Its own words say little. Those of three functions that it uses say more: calculated, decimal, float. Perhaps listening helps.

## 1 · A graph with text

The nodes are functions, methods and classes of Python's standard library that have a docstring, a text that says what they do. If one's code uses another, or a class holds a method, the two are joined, both ways. A node's row of $x$ marks which of 1,008 words its docstring has: those that occur in four families (section 2) or more, and no module's name. Its class is its module's chapter in the manual, one of seven.
"""

# %%
n = len(graph.y)
same = (graph.y[source] == graph.y[target]).float().mean()
print("x:", tuple(graph.x.shape), "· joined pairs:", len(source) // 2)
print(f"edges that stay within a chapter: {same:.0%}")
real_graph_figures.where_edges_lead()

# %% [markdown]
r"""
Like joins like, least in "files", where 87 of 100 edges stay. Such a graph is called **homophilous**.

## 2 · A fair split

Training nodes teach, validation nodes say when to stop, test nodes judge. The **score** is the share of right answers in a chapter, averaged over the seven; a constant answer has 1/7 = 14 %.

Shall we deal nodes one by one, by lot? Or **family** by family: all nodes of a module or package on one side, and modules that repeat each other's sentences (gzip, bz2, lzma) together?
"""

# %%
predict("dealt_by_lot")

# %%
real_graph_figures.two_deals()

# %% [markdown]
r"""
**"It never trained on these nodes, so the test is fair."** Dealt one by one, GCN scores more than 90 % (words alone nearly 70); by families, some 50 % (35). A test node's sisters were in training, with their module's phrases, and often joined to it. Dealt by lot, GCN learned more of modules than of chapters. So we deal families. All words and edges are there in training; no test *label* is used:
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

One network of two layers; `make` builds a layer of one kind (first of width 8 with 4 heads), and only that differs.
"""

# %%
show_source(real_graph.Reader)

# %% [markdown]
r"""
- **words alone**: the same layer, with itself as only neighbour.
- **GCN**: the neighbours' $Wx$, summed with the fixed weights of 10a.
- **GAT**, **GATv2**: learned weights, by the scores of 10a.
- **GAT of torch_geometric**: a public library's, begun with our GAT's parameters.
- **dot products**: learned weights, from queries and keys made of $Wx$.

All hear themselves, too. Train two; stdev is a test node:
"""

# %% tags=["nbval-ignore-output"]
readers, scores = {}, {}
for kind in ("words alone", "GAT"):
    readers[kind], _ = train(kind, parts, graph.edge_index)
    scores[kind] = score(readers[kind], graph.edge_index, parts["test"])
    print(f"{kind:11} finds {scores[kind]:.0%}")

# %%
assert parts["test"][node]
x, edges = to_device((graph.x, self_loops(graph.edge_index, n)))
for kind, reader in readers.items():
    said = graph.chapters[reader(x, edges)[node].argmax()]
    print(f"stdev, by {kind}:", "right" if said == "numbers" else "wrong")

# %% tags=["proof"]
assert quick() or scores["GAT"] > scores["words alone"] + 0.1

# %% [markdown]
r"""
Its own words placed stdev wrongly, its neighbours' rightly. Is that the attention? The stored runs have six networks:
"""

# %%
predict("even_or_learned")

# %%
real_graph_figures.networks()

# %% [markdown]
r"""
Words alone score some 35 % in each split, all that hear neighbours 46 to 57 %. GCN, with its fixed weights, is among them: **again the graph did the work.**

## 4 · Edges that mislead

Spoil the graph: cut a share of the edges in two and join the halves by lot.

A last network, **own words beside**, has dot products, and adds the node's own $W'x$ to the mixture.
"""

# %%
predict("wrong_edges")

# %%
real_graph_figures.misleading()

# %% [markdown]
r"""
With half of the edges shuffled, neighbours are worth about nothing; with all, they do harm: 23 to 27 % for GCN and GAT, words alone 35.

**"Attention drops the edges that mislead."** Dot products could. Of two joined nodes a GAT's head can let only one prefer itself, for all rank alike (10a). An even weight is 1 over the number of nodes that are heard; these are the weights on the shuffled graph:
"""

# %%
real_graph_figures.where_weights_lie()

# %% [markdown]
r"""
GAT's stay even. Dot products choose: 3.2 to 3.8 times an even weight for the node itself, 1.2 to 1.5 within its chapter, 0.3 to 0.5 outside. They score 28 to 30 %: some weight always reaches wrong neighbours. With own words beside, scores fall only to words alone.

## 5 · Many small graphs

In section 3 edges helped. Can they be everything? Chemists ask about whole graphs. A molecule is a graph of atoms, its edges are bonds. Is an N bound to an O?
"""

# %%
for atoms in ("CNO", "NCO"):
    x, bonds, _ = molecules.chain(atoms)  # x: a column each for C, N, O
    bound = molecules.is_bound(x, bonds).tolist()
    print(atoms, "counts", x.sum(0).tolist(), "bound", bound)
show_source(molecules.is_bound)

# %% [markdown]
r"""
Both have the same atoms, so no count tells them apart. One layer with weights set by hand does: an O that hears an N gets $1 + 1 - 1 = 1$. (Right where no other atom hears two Ns.) To take many molecules at once, put them side by side: one graph, whose parts are not joined.
"""

# %% [markdown] tags=["exercise:batch_graphs"]
# Shift each graph's numbers by the nodes before it: CNO and NCO have 3 nodes and 4 edges each (`n_nodes`, `n_edges`); C of the second, 1, becomes 4.

# %%
join = yours("batch_graphs")  # ours, until yours has passed
some = molecules.twins(100)  # 100 pairs: equal atoms, N bound to O and not
n_atoms = torch.tensor([len(one.x) for one in some])
n_bonds = torch.tensor([one.edge_index.shape[1] for one in some])
bonds = torch.cat([one.edge_index for one in some], 1)
one_graph = join(n_atoms, n_bonds, bonds)
x = torch.cat([one.x for one in some])
bound = molecules.is_bound(x, one_graph)
print(f"{len(x)} atoms, {one_graph.shape[1]} edges, bound: {bound.sum()}")

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
right = ((heard[:, 0] > 0) == joined).sum().item()
print(len(some), "molecules; right:", right)

# %% [markdown]
r"""
The mean of atoms is the same for both of a pair; the mean of `bound` tells all «200». Here edges are everything.

## In real work

PyTorch Geometric, as text:

```python
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, global_mean_pool

# graphs: a list of torch_geometric.data.Data(x=..., edge_index=...)
conv = GATv2Conv(3, 8, heads=4)  # adds self-loops by itself
for batch in DataLoader(graphs, batch_size=64, shuffle=True):
    hidden = conv(batch.x, batch.edge_index)  # one large graph
    pooled = global_mean_pool(hidden, batch.batch)  # our `owner`
```

Cora, a public graph of papers (from the LINQS group), is two files; give the function below the texts of `cora.content` and `cora.cites`. A citation is listed once: without `flip` one does not hear the other.
"""

# %%
show_source(read_citations)

# %%
tiny = read_citations("p1 1 0 ML\np2 0 1 DB\np3 1 1 ML\n", "p1 p2\np1 p3\n")
print(tiny.x.shape, tiny.y.tolist(), tiny.edge_index.tolist())

# %% [markdown]
r"""
## Nine words once more

stdev's own words fit any chapter; its neighbours placed it. That took a graph in which like joins like; over all nodes, fixed weights did about as well as attention.

**To remember.** First ask what the words know, then what the edges add, then what attention adds.

- Deal families, not nodes: else relatives give the answer away.
- Three controls: words alone, fixed weights, shuffled edges.
- Attention did not drop all bad edges; a path beside it kept the node's own words.
- A batch of graphs is one graph whose parts are not joined.

**Sources.** Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491); Shchur et al. 2018 on splits (arXiv:1811.05868); the standard library of Python 3.11. Protocol, rates, seeds: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: [11a](11a_approximations.ipynb): can attention be cheaper?
"""
