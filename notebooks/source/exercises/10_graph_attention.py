# %% [markdown]
# # 10 · Graph attention: exercises
#
# Ten exercises, about 70 minutes. The first eight follow part [10a · graph](../10a_graph.ipynb), best in this order; of these the last two are the hardest, and may wait. The ninth and the tenth take many small graphs at once, for questions about whole graphs.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ short, ★★ some lines or some thinking, ★★★ an idea that has to be found.
#
# Throughout, n is the number of nodes, numbered from 0. **An edge from j to i lets i look at j**: `edge_index`, of shape (2, edges), holds the sources j in its first row and the targets i in
# its second. A self-loop, an edge from i to i, is there only if it is listed.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:three_neighbours"]
# Five nodes, and four edges: 1 → 0, 2 → 0, 3 → 0 and 0 → 4. There are no self-loops. The scores, with node 0 as the one who looks, and the values, which are single numbers here:
#
# | node | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | score | ln 6 | 0 | ln 2 | ln 3 | ln 4 |
# | value | 30 | 60 | 12 | 4 | 100 |
#
# **What is the output of node 0?** A pencil is enough. Type a number or an expression in quotes.

# %% [markdown] tags=["exercise:sum_of_messages"]
# The last step of attention along edges. Each edge j → i carries a message, its weight times the value of j, and each node adds up what arrives:
#
# $$\text{output}_i = \sum_{j \to i} w_{ij} \, v_j .$$
#
# `value[source]` gathers a row for each edge. `index_add(0, target, rows)` adds each row at the place that `target` names. In the function below **one line is wrong. Repair it.**


# %% [markdown] tags=["exercise:no_edges_at_all"]
# Five nodes; no edge leads to node 4, and it has no self-loop. Three programs compute attention over all pairs. Before the softmax, (1) multiplies the scores of pairs without an edge by 0,
# (2) sets them to -1e9, and (3) is `attend` with the mask of the edges. **What is the output of node 4?**

# %% [markdown] tags=["exercise:attend_to_known"]
# `knows[i, j]` is True where member i knows member j; a member need not know itself. Each should look only at those it knows: all other *weights* are 0. Who knows nobody gets zeros;
# `nan_to_num(0.0)` sees to that, since a softmax over nothing is 0/0. In the function below **one line is wrong. Repair it.**


# %% [markdown] tags=["exercise:path_edges"]
# n tokens stand in a row, and each looks at those at most `radius` places away, itself included. **Write the edges of this graph**, so that `masks.from_edges(edges, n)` is the same table as
# `masks.window(n, radius)`. The result is a tensor (2, edges) of whole numbers, sources above targets. Any order will do, but each edge is listed once. The radius may be 0, or larger than n.


# %% [markdown] tags=["exercise:why_edges_mislead"]
# A school: the nodes are pupils of two classes, and each pupil's features hint at its class. An edge is a shared desk. The desks were drawn by lot, so about half of a pupil's neighbours are
# of the *other* class. A layer of graph attention without self-loops gives each node the weighted sum of its neighbours' values, with the weights of a softmax. **Why does this tell the classes apart worse, not merely no better, than an MLP
# that sees a node's own features and no edge? Why can learned weights not repair it? What would help?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown] tags=["exercise:softmax_over_edges"]
# `scores` holds a number for each edge (its rows) and each head (its columns). **Write the softmax**: for each head,
#
# $$w_{j \to i} = \frac{\exp(e_{j \to i})}{\sum_{k \to i} \exp(e_{k \to i})},$$
#
# where the sum runs over all edges to the same target i. The edges come in any order, some nodes have none, and scores may be 1,000 or -1,000. The result has the shape of `scores`. A table of n × n is not
# allowed: real graphs have a million nodes. Two tools: `zeros.index_add(0, index, rows)` adds each row at the place that `index` names. `start.scatter_reduce(0, index, scores, "amax")` keeps the largest
# of `start` and all that comes to a place; there, `index` has the shape of `scores`.


# %% [markdown] tags=["exercise:gcn_scores"]
# A graph convolutional network (GCN; Kipf and Welling 2016, arXiv:1609.02907) gives the edge j → i the fixed weight $1 / \sqrt{d_i d_j}$. The graph has each edge both ways and a self-loop at each node, and
# the degree $d_i$ counts the edges that lead to i, self-loop included. These weights do not sum to 1, an attention's do. So **find scores, one for each edge, of which the softmax over the edges to one node makes GCN's weights,
# divided by their sum at that node.** Several answers are right, since a softmax sees differences only.
#
# `edge_index[1].bincount(minlength=n)` counts.


# %% [markdown] tags=["exercise:batch_graphs"]
# Chemists ask about whole graphs. A molecule is a graph of atoms, and its edges are bonds. A layer takes many molecules at once, if they stand side by side as **one graph whose parts are not joined**. `edge_index` holds
# the edges of several graphs, one after the other, and each graph counts its own nodes from 0; `n_nodes` and `n_edges` say how many nodes and edges each has. **Write the edges of the one graph**: add to each number the
# nodes of the graphs before it. For CNO and NCO, `n_nodes` is [3, 3] and `n_edges` is [4, 4]; the C of the second, number 1 there, becomes 4.


# %% [markdown] tags=["exercise:pool_mean"]
# We want one answer for each molecule, and have a row for each atom. **Pooling** makes one row of them. `graph[i]` says to which graph node i belongs, and none is empty. **Write the mean of the rows of each graph.** What
# does a mean forget? How many atoms there were.


# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. A softmax over the nodes from which an edge leads here, and nobody else. Without a self-loop a node does not see itself.
# 2. `edge_index[0]` sends, `edge_index[1]` receives. Gather at the source, add at the target: message passing.
# 3. A row of scores that are all -1e9 is a uniform row. A node without edges must get 0.
# 4. Weight 0 needs a score of -inf before the softmax. A score of 0 still attends.
# 5. A window of radius r joins the nodes of a path that are at most r steps apart; all pairs are the complete graph (both with self-loops).
# 6. Edges say who, not who is alike. Attention averages neighbours: keep the node's own features beside the average. With two classes an even mix is the worst case.
# 7. Gather, exp, index_add, divide. Subtract each target's own maximum, begun at -inf.
# 8. GCN, with each row divided by its sum, is attention with the score $-\frac{1}{2} \ln d_j$: the degree decides, the content never.
# 9. A batch of graphs is one graph whose parts are not joined.
# 10. A property of a whole graph needs one row for all of its nodes: add up by the number of the graph, divide by its nodes.
#
# </details>
