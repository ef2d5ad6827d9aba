# /// ideas
# [text_graph]
# says = "a graph with text: functions that use each other, a row of words for each, the manual's chapter as class"
# motive = "Perhaps listening to neighbours helps"
# shown = "words = shorten("
# action = 'predict("nine_words")'
#
# [homophilous]
# says = "homophilous: like joins like; the share is read beside the share in a shuffled graph"
# motive = "Is that much?"
# shown = "edges within a chapter"
# action = 'predict("wrong_edges")'
#
# [balanced]
# says = "balanced accuracy counts each class the same, so a constant answer has 1 / classes"
# motive = "the large ones would count most"
# shown = "0.14"
# action = "def class_average("
#
# [transductive]
# says = "transductive: words and edges of all nodes are there in training, labels are not"
# motive = "Which of its neighbours may a training node hear"
# shown = "(x, edges)[training]"
# action = 'predict("held_out_modules")'
#
# [leak]
# says = "relatives of test nodes in training give the answer away: 0.95 with nodes at random, 0.44 with modules held out"
# motive = "0.95 on nodes that it never trained on"
# shown = "modules held out,"
# action = "def leaked("
#
# [alone]
# says = "words alone, the same network without edges, is the control of the edges"
# motive = "How much do the edges add"
# shown = "alone = edges[:, :0]"
# action = 'predict("held_out_modules")'
#
# [fixed]
# says = "over five folds the edges help in the median and not in each; learned weights add nothing to fixed ones"
# motive = "And was it luck of the split"
# shown = 'compared = {'
# action = 'predict("even_or_learned")'
#
# [rewired]
# says = "with half of the edges shuffled neighbours are worth nothing, with all they do harm"
# motive = "What if edges mislead"
# shown = "real_graph_figures.misleading()"
# action = 'predict("wrong_edges")'
#
# [static]
# says = "a GAT's head ranks sources alike for all, so of two joined nodes only one can prefer itself; GATv2 lifts this"
# motive = "a node would do best to hear itself alone"
# shown = "2 - 0.4 = 1.6"
# action = 'predict("two_joined")'
#
# [skip]
# says = "a skip connection keeps a node's own words beside the mixture: misleading edges then cost little"
# motive = "its curve ends no higher"
# shown = "GAT beside own words"
# action = 'predict("wrong_edges")'
#
# [program]
# says = "one program from data through split and training to two controls, with PyTorch Geometric"
# motive = "A program for your own graph"
# shown = "from torch_geometric.nn import GATConv"
# action = "you put your own"
# ///

# %% [markdown]
r"""
{title}

Nine words, in alphabetical order, are all that a network gets of a Python function. They are from its **docstring**, the text that says what it does. Which chapter of Python's manual describes it?

**Afterwards you can** split a graph so that no label leaks; say with controls what words, edges and attention did; train on your own graph with PyTorch Geometric.

{about}

<details><summary>中文摘要 · Chinese</summary>
图是 Python 标准库:两千多个函数和类,边是“谁用到谁”,文字是说明中的词。节点随机划分时,成绩高得可疑;按模块划分后才看得出真相:邻居的词很有用,而学来的注意力权重并不比固定的权重好。边打乱以后,邻居反而有害。最后是一个完整的 PyTorch Geometric 程序:数据、划分、训练、对照。
</details>
"""

# %% tags=["imports"]
import copy
from statistics import median
from textwrap import shorten

import torch
import torch.nn.functional as F

from lesson_lib.chapters.c10_graph_attention import library, real_graph_figures
from lesson_lib.course import *

_ = torch.manual_seed(0)
warm_up()

# %%
graph = library.load()
riddle = 1753
print(graph.text(graph.names[riddle]).replace(" ", "\n"))

# %%
predict("nine_words")

# %%
source, target = graph.edge_index
for j in source[target == riddle].tolist():
    words = shorten(graph.text(graph.names[j]), 60, placeholder=" ...")
    print(f"{graph.names[j]}: {words}")

# %% [markdown]
r"""
The riddle is `statistics.stdev`, the standard deviation, from the chapter "numbers". Its own words hardly say so. But these are three functions that it uses, and their words do: calculated, decimal, float. Perhaps listening to neighbours helps.

## 1 · A graph with text

The nodes are 2,339 functions, methods and classes of Python's standard library. Two are joined, both ways, if the code of one uses the other, or if a class has a method. Row $i$ of `x` has a column for each of 1,008 words; it is above 0 where node $i$'s docstring has the word. (Names of modules are left out.) The label `y` is the chapter of the manual. `graph.family` numbers the modules; those that repeat each other's docstrings, as gzip and bz2 do, have one number.

How many edges stay within a chapter? And how many would in a graph without meaning? `shuffled` exchanges the targets of all edges at random, so each node keeps its number of edges.
"""

# %%
from carry import graphs as carried  # the file of part 10a

x, y, edges = graph.x, graph.y, graph.edge_index
print("chapters:", ", ".join(graph.chapters))
for name, some in {"real": edges, "shuffled": carried.shuffled(edges)}.items():
    stays = (y[some[0]] == y[some[1]]).float().mean()
    print(f"edges within a chapter, {name} graph: {stays:.2f}")
stays = (graph.family[edges[0]] == graph.family[edges[1]]).float().mean()
print(f"edges within a module: {stays:.2f}")

# %% [markdown]
r"""
Is that much? Of 100 edges 97 stay within a chapter, and 20 in the shuffled graph. So like joins like; such a graph is called **homophilous**. Keep the last line in mind: 94 stay even within a module.

## 2 · A fair split

Training nodes teach, validation nodes say which weights to keep, test nodes judge. Chapters differ in size: "protocols" has 675 nodes, "language" 129. In a plain share of right answers the large ones would count most. So take the share in each chapter, and average these. This is **balanced accuracy**. A constant answer has 1/7 = 0.14.
"""

# %% [markdown] tags=["exercise:class_average"]
# Write it. `right` is True where a node's answer is right, `y` its class.

# %% [markdown]
r"""
The file's `Network` has two layers, with ELU (a smooth ReLU) and **dropout** between, which in training sets a random half of the numbers to 0.

Which of its neighbours may a training node hear? All of them: words and edges of test nodes are known beforehand. Only their labels are hidden, so the loss reads the rows of training nodes alone. This is called **transductive** learning.
"""

# %%
average = yours("class_average")


@torch.no_grad()
def score(model, edges, nodes):
    right = model.eval()(x, edges).argmax(-1) == y
    return average(right[nodes], y[nodes]).item()


def learned(edges, layer, parts, seed=0):
    """The network that was best in validation, and its score on the test nodes."""
    _ = torch.manual_seed(seed)
    size = (32,) if layer is carried.GCN else (8, 4)  # 4 heads side by side: 32
    model, best = carried.Network(layer(1008, *size), layer(32, 7)), 0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    training, validation, test = parts  # masks (2339,)
    for step in range(100):
        logits = model.train()(x, edges)[training]
        loss = F.cross_entropy(logits, y[training])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4 and (now := score(model, edges, validation)) > best:
            best, kept = now, copy.deepcopy(model)
    return kept, score(kept, edges, test)


# %% [markdown]
r"""
How much do the edges add? The control is **words alone**: the same network with an empty list of edges. The file's layers add self-loops, so each node then hears itself alone. `split_by_group` shuffles the groups of each class, then deals them all in turn to five **folds**. Three folds train, one validates, one tests; the argument `fold` says which. (`torch.isin(a, b)` says for each element of a whether it is in b.)
"""

# %%
show_source(carried.split_by_group)

# %% [markdown]
r"""
First let each node be a group of its own:
"""

# %%
alone = edges[:, :0]
at_random = carried.split_by_group(torch.arange(2339), y)  # each node is a group
random = {}
for name, some in {"words alone": alone, "GCN": edges}.items():
    _, random[name] = learned(some, carried.GCN, at_random)
    print(f"nodes at random, {name}: {random[name]:.2f}")

# %% [markdown]
r"""
The GCN has «0.95» on nodes that it never trained on. But most edges stay within a module. How many test nodes have a relative, a node of the same module, in training?
"""

# %% [markdown] tags=["exercise:leaked"]
# Write this test of a split: of the test nodes, the share whose group has training nodes, too. `training` and `test` are masks.

# %%
by_module = carried.split_by_group(graph.family, y)
share = yours("leaked")
for name, parts in {"at random": at_random, "by module": by_module}.items():
    training, _, test = parts
    print(f"{name}: {share(graph.family, training, test):.2f}")

# %% [markdown]
r"""
At random nearly every test node has relatives in training, by module none. (The modules of "archives" fell into other folds. So this test has six chapters, and a constant answer gets 1/6 = 0.17.) Train both again:
"""

# %%
predict("held_out_modules")

# %%
kept, scores = {}, {}
for name, some in {"words alone": alone, "GCN": edges}.items():
    kept[name], scores[name] = learned(some, carried.GCN, by_module)
    print(f"modules held out, {name}: {scores[name]:.2f}")

# %% tags=["proof"]
assert random["GCN"] > 0.88 and 0.55 < random["words alone"] < 0.8
assert scores["GCN"] < 0.55 and scores["words alone"] < scores["GCN"] - 0.05

# %% [markdown]
r"""
**"It never trained on these nodes, so the test is fair."** Half of the GCN's score came from relatives. Words alone fall from «0.69» to «0.29», although this network hears nobody. Words leak, too: functions of one module share them, and whoever has seen some of them knows the chapter of the others. With nodes at random, to recognise the module was enough.

## 3 · Words, edges, attention

The neighbours help: «0.44» against «0.29». Was that the attention? There was none, since a GCN's weights are fixed. And was it luck of the split? Over folds 0 to 4 each module is tested once; so far we had fold 0. Now take a GAT, too, with four heads, and in fold $k$ the seed $k$:
"""

# %%
predict("even_or_learned")

# %% tags=["nbval-ignore-output"]
compared = {
    "words alone": (alone, carried.GCN),
    "GCN": (edges, carried.GCN),
    "GAT": (edges, carried.GAT),
}
table = {}
for name, (some, layer) in compared.items():
    table[name] = []
    for fold in range(5):
        parts = carried.split_by_group(graph.family, y, fold)
        table[name].append(learned(some, layer, parts, fold)[1])
    shown = " ".join(f"{value:.2f}" for value in table[name])
    print(f"{name:11} {shown}   median {median(table[name]):.2f}")

# %% tags=["proof"]
words, fixed, chosen = table.values()
assert median(fixed) > median(words) + 0.06 and median(chosen) > median(words) + 0.03
assert min(f - w for f, w in zip(fixed, words)) < 0.05
assert sum(c > f + 0.03 for c, f in zip(chosen, fixed)) <= 1

# %% [markdown]
r"""
Each column is a fold. In three of them the GCN gains 15 to 20 points by its edges, in folds 1 and 2 next to nothing. Either of these two alone would have made edges look useless. So read the medians: words alone «0.32», GCN «0.44». GAT leads by 4 points in fold 1 and by 2 in fold 4, and is 3 to 6 behind in the others; its median is «0.44», too. **The graph helps, and learned weights add nothing to fixed ones.** Where nearly all neighbours are of the right chapter, there is little to choose.

## 4 · Edges that mislead

What if edges mislead? Then there would be much to choose. Shuffle a share of the edges, and train on that graph.
"""

# %%
predict("wrong_edges")

# %%
real_graph_figures.misleading()

# %% [markdown]
r"""
These are stored runs on three other splits. They train longer, each kind with the learning rate that validates best, so their numbers are higher than ours. With half of the edges shuffled, GCN and GAT only equal words alone. With all of them GCN, GAT and GATv2 have about ‹0.25›. (GATv2 and the fifth curve are explained below.)

**"Attention drops the edges that mislead."** On such a graph a node would do best to hear itself alone. Can it learn that? Take two nodes $u$ and $v$, each of which hears itself and the other. In a GAT the score is $\text{LeakyReLU}(p_i + r_j)$ (10a), where $p_i$ is the target's number and $r_j$ the source's.
"""

# %%
predict("two_joined")

# %% [markdown]
r"""
LeakyReLU rises everywhere, so every target ranks its sources by $r$ alone. If $r_u > r_v$, then $u$ prefers $u$, and $v$ prefers $u$, too. So a GAT's head cannot turn both to themselves. **GATv2** multiplies by a vector $a$ after LeakyReLU:

$$s_{ij} = a \cdot \text{LeakyReLU}(W_{\text{query}}\, x_i + W_{\text{key}}\, x_j)$$

For $u$ let query and key be $(1, -1)$, for $v$ both be $(-1, 1)$, and let $a = (1, 1)$. Then $u$ scores itself with $\text{LeakyReLU}(2) + \text{LeakyReLU}(-2) = 2 - 0.4 = 1.6$, and it scores $v$ with 0. Likewise $v$ scores itself with 1.6, and $u$ with 0. So each prefers itself.

So GATv2 could turn each node to itself. But its curve ends no higher than GAT's. (We have not looked at its weights.) What helps is a way around the softmax. "GAT beside own words" is a GAT with a **skip connection**: a second matrix reads the node's own row, and its result is added to the mixture. (06a's residual connection is one, without a matrix.) With all edges shuffled this network has ‹0.31›, GAT ‹0.26› and words alone ‹0.35›.
"""

# %% [markdown]
r"""
## In real work

A program for your own graph has four parts: data, split, training, controls. Here is one with PyTorch Geometric, the graph library of 10a. First the data, into which you put your own `x`, `edge_index`, `y` and `group`, and the network:

```
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GATConv
from carry.graphs import shuffled, split_by_group

data = Data(x=graph.x, edge_index=graph.edge_index,
            y=graph.y, group=graph.family)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        words, classes = data.x.shape[1], int(data.y.max()) + 1
        self.first = GATConv(words, 8, heads=4)
        self.last = GATConv(4 * 8, classes)

    def forward(self, x, edge_index):
        x = F.elu(self.first(x, edge_index))
        x = F.dropout(x, 0.5, self.training)
        return self.last(x, edge_index)
```

Then the score, and the controls:

```
@torch.no_grad()
def balanced(model, edge_index, nodes):
    guess = model.eval()(data.x, edge_index).argmax(1)
    right = (guess == data.y).float()
    each = [right[nodes & (data.y == k)].mean()
            for k in data.y[nodes].unique()]
    return sum(each).item() / len(each)


controls = {"edges": data.edge_index,
            "no edges": data.edge_index[:, :0],
            "shuffled": shuffled(data.edge_index)}
```

Then five folds, and each control on each:

```
results = {name: [] for name in controls}
for fold in range(5):
    parts = split_by_group(data.group, data.y, fold)
    training, validation, test = parts
    for name, edge_index in controls.items():
        torch.manual_seed(fold)
        net, best = Net(), 0.0
        adam = torch.optim.Adam(net.parameters(), 0.01)
        for step in range(100):
            logits = net.train()(data.x, edge_index)
            loss = F.cross_entropy(logits[training],
                                   data.y[training])
            adam.zero_grad()
            loss.backward()
            adam.step()
            now = balanced(net, edge_index, validation)
            if now > best:  # not: best on the test
                best = now
                kept = balanced(net, edge_index, test)
        results[name].append(kept)
for name, found in results.items():
    print(name, *(f"{score:.2f}" for score in found))
```

It prints five scores for each control. The medians are ‹0.46› with edges, ‹0.34› without, and ‹0.16› with shuffled ones, a constant answer. Put `GCNConv(words, 32)` and `GCNConv(32, classes)` in the place of the two layers, and the first becomes ‹0.47›: here, too, fixed weights do as well.

The trap is a control that changes two things. `GATConv` adds self-loops by itself, so without edges each node still reads its own words. Suppose you switch them off, with `add_self_loops=False` in both layers. Then fold 0 prints ‹0.40› with edges and ‹0.17› without. Without edges and self-loops a node hears nothing, so the 23 points are its own words and its neighbours' together.

## To carry away

`notebooks/carry/graphs.py` has the layers, the split, this loop as `fit`, and balanced `accuracy`. Here is the control that you will need most. It takes a share of the edges in random order and gives each the target of another:
"""

# %%
show_source(carried.shuffled)

# %% [markdown]
r"""
It keeps each node's number of edges, but an edge that went both ways goes one way now.

## Nine words once more

`statistics.stdev` is a test node of fold 0. What do words alone say, what does the GCN say, and which of the three neighbours was it? Cut them off, one by one and all together:
"""

# %% tags=["nbval-ignore-output"]
def chance_of_numbers(model, edges):
    """The probability of the chapter "numbers" for the riddle."""
    with torch.no_grad():
        return model(x, edges)[riddle].softmax(-1)[0].item()


near = source[target == riddle]
chance = {"words alone": chance_of_numbers(kept["words alone"], alone)}
chance["GCN"] = chance_of_numbers(kept["GCN"], edges)
for name, lost in {**{graph.names[j]: j for j in near}, "all three": near}.items():
    cut = torch.isin(source, lost) & (target == riddle)
    chance[f"GCN without {name}"] = chance_of_numbers(kept["GCN"], edges[:, ~cut])
for name, value in chance.items():
    print(f"{name:46} {value:.2f}")

# %% tags=["proof"]
assert by_module[2][riddle] and chance["words alone"] < 0.5 < chance["GCN"]
assert chance["GCN without all three"] < chance["GCN"] - 0.2

# %% [markdown]
r"""
Its own words give "numbers" a probability of «0.15», about one in seven. With the neighbours it is «0.80». No single neighbour decides: cut any one of them, and it stays above 0.6. Cut all three, and it falls to «0.22». So what comes along its edges solved the riddle, with fixed weights.

**To remember.** First ask what the words know, then what the edges add, then what attention adds.

- Hold out whole groups: else relatives give the answer away.
- Controls: no edges, fixed weights, shuffled edges.
- A GAT ranks sources alike for all; GATv2 does not.
- A skip connection gives a node's own words a way of their own.

**Sources.** Kipf & Welling 2016 (arXiv:1609.02907); Veličković et al. 2017 (arXiv:1710.10903); Brody et al. 2021 (arXiv:2105.14491); Shchur et al. 2018 on splits (arXiv:1811.05868); the standard library of Python 3.11. Protocol, and many small graphs: [evidence](evidence/10_graph_attention_evidence.ipynb).

**Next**: [11a](11a_approximations.ipynb): can attention be cheaper?
"""
