# %% [markdown]
# # 10 · Graph attention: exercises
#
# Eight exercises, about 60 minutes. They follow the lesson `10_graph_attention`; best in this order, and the last two, the hardest, may wait.
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

# %% [markdown]
# ## 1 · What does a node get?
#
# `★ · 6 min · a whole layer of graph attention is this line, for every node`
#
# Five nodes, and four edges: 1 → 0, 2 → 0, 3 → 0 and 0 → 4. There are no self-loops. The scores, with node 0 as the one who looks, and the values, which are single numbers here:
#
# | node | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | score | ln 6 | 0 | ln 2 | ln 3 | ln 4 |
# | value | 30 | 60 | 12 | 4 | 100 |
#
# **What is the output of node 0?** A pencil is enough. Type a number or an expression in quotes.

# %%
### BEGIN SOLUTION
three_neighbours = "60/6 + 2*12/6 + 3*4/6"
### END SOLUTION
### STUB: three_neighbours = ...

# %% tags=["exercise:three_neighbours", "points:2"]
check(three_neighbours, "three_neighbours")

# %%
# hint("three_neighbours")  # without the first '#': a question; run again for the next one
# solution("three_neighbours")

# %% [markdown]
# ## 2 · Who sends, who receives: a repair
#
# `★ · 5 min · libraries disagree on which row of an edge list is the source, and where edges go both ways nobody notices`
#
# The last step of attention along edges. Each edge j → i carries a message, its weight times the value of j, and each node adds up what arrives:
#
# $$\text{output}_i = \sum_{j \to i} w_{ij} \, v_j .$$
#
# `value[source]` gathers a row for each edge. `index_add(0, target, rows)` adds each row at the place that `target` names. In the function below **one line is wrong. Repair it.**


# %%
def sum_of_messages(
    value: Float[Tensor, "n d"],
    weights: Float[Tensor, " edges"],
    edge_index: Int[Tensor, "2 edges"],
) -> Float[Tensor, "n d"]:
    ### BEGIN SOLUTION
    source, target = edge_index
    ### END SOLUTION
    ### STUB: target, source = edge_index
    messages = weights[:, None] * value[source]
    return torch.zeros_like(value).index_add(0, target, messages)


# %% tags=["exercise:sum_of_messages", "points:2"]
check(sum_of_messages)

# %%
# hint("sum_of_messages")
# solution("sum_of_messages")

# %% [markdown]
# ## 3 · What does a lonely node get? Predict the picture
#
# `★★ · 6 min · in real graphs some nodes have no edge; a program that was never tried on one fails silently`
#
# Five nodes; no edge leads to node 4, and it has no self-loop. Three programs compute attention over all pairs. Before the softmax, (1) multiplies the scores of pairs without an edge by 0,
# (2) sets them to -1e9, and (3) is `attend` with the mask of the edges. **What is the output of node 4?**
#
# - a) (1) 0, (2) 0, (3) 0
# - b) (1) the mean of all values, (2) 0, (3) 0
# - c) (1) the mean of all values, (2) the mean of all values, (3) 0
# - d) (1) the mean of all values, (2) the mean of all values, (3) nan
# - e) (1) its own value, (2) its own value, (3) its own value
# - f) (1) the mean of all values, (2) nan, (3) nan

# %%
### BEGIN SOLUTION
no_edges_at_all = "c"
### END SOLUTION
### STUB: no_edges_at_all = ...  # one letter, in quotes

# %% tags=["exercise:no_edges_at_all", "points:4"]
check(no_edges_at_all, "no_edges_at_all")

# %%
picture("no_edges_at_all")

# %%
# hint("no_edges_at_all")
# solution("no_edges_at_all")

# %% [markdown]
# ## 4 · A score of 0 is not silence: a repair
#
# `★★ · 8 min · "set the score to 0 for those who are not connected" stands in slides, in this course's source, too, and the strangers get weight`
#
# `knows[i, j]` is True where member i knows member j; a member need not know itself. Each should look only at those it knows: all other *weights* are 0. Who knows nobody gets zeros;
# `nan_to_num(0.0)` sees to that, since a softmax over nothing is 0/0. In the function below **one line is wrong. Repair it.**


# %%
def attend_to_known(
    query: Float[Tensor, "n d_k"],
    key: Float[Tensor, "n d_k"],
    value: Float[Tensor, "n d_v"],
    knows: Bool[Tensor, "n n"],
) -> Float[Tensor, "n d_v"]:
    scores = query @ key.mT / key.shape[-1] ** 0.5
    ### BEGIN SOLUTION
    scores = scores.masked_fill(~knows, -torch.inf)
    ### END SOLUTION
    ### STUB: scores = scores * knows
    weights = scores.softmax(-1).nan_to_num(0.0)  # who knows nobody: 0/0
    return weights @ value


# %% tags=["exercise:attend_to_known", "points:4"]
check(attend_to_known)

# %%
# hint("attend_to_known")
# solution("attend_to_known")

# %% [markdown]
# ## 5 · A window is a graph
#
# `★★ · 8 min · truncated attention of lesson 09 is graph attention on a path: one program for both`
#
# n tokens stand in a row, and each looks at those at most `radius` places away, itself included. **Write the edges of this graph**, so that `masks.from_edges(edges, n)` is the same table as
# `masks.window(n, radius)`. The result is a tensor (2, edges) of whole numbers, sources above targets. Any order will do, but each edge is listed once. The radius may be 0, or larger than n.


# %%
def path_edges(n: int, radius: int) -> Int[Tensor, "2 edges"]:
    ### BEGIN SOLUTION
    place = torch.arange(n)
    step = torch.arange(-radius, radius + 1)
    source = (place[:, None] + step).flatten()
    target = place.repeat_interleave(len(step))
    there = (source >= 0) & (source < n)
    return torch.stack([source, target])[:, there]
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:path_edges", "points:4"]
check(path_edges)

# %%
# hint("path_edges")
# solution("path_edges")

# %% [markdown]
# ## 6 · Where attention along edges harms. In your own words
#
# `★★ · 7 min · on such graphs a network that ignores all edges beats this layer; look at the edges before you choose the model`
#
# A school: the nodes are pupils of two classes, and each pupil's features hint at its class. An edge is a shared desk. The desks were drawn by lot, so about half of a pupil's neighbours are
# of the *other* class. A layer of graph attention without self-loops gives each node the weighted sum of its neighbours' values, with the weights of a softmax. **Why does this tell the classes apart worse, not merely no better, than an MLP
# that sees a node's own features and no edge? Why can learned weights not repair it? What would help?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then
# shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_edges_mislead = """Softmax weights are positive and sum to 1, so the output is an average of the
neighbours: half of the one class, half of the other, whoever asks. A node's own features are not in it,
and no weights among neighbours put them in. Keep them beside the average, by a skip connection or
concatenation, or let in a self-loop."""
### END SOLUTION
### STUB: why_edges_mislead = """ """

# %% tags=["exercise:why_edges_mislead", "points:4"]
check(why_edges_mislead, "why_edges_mislead")

# %%
# hint("why_edges_mislead")
# solution("why_edges_mislead")

# %% [markdown]
# ## 7 · A softmax for each node
#
# `★★★ · 12 min · this is the heart of every graph attention layer: a softmax whose rows have different lengths, without a table of all pairs`
#
# `scores` holds a number for each edge (its rows) and each head (its columns). **Write the softmax**: for each head,
#
# $$w_{j \to i} = \frac{\exp(e_{j \to i})}{\sum_{k \to i} \exp(e_{k \to i})},$$
#
# where the sum runs over all edges to the same target i. The edges come in any order, some nodes have none, and scores may be 1,000 or -1,000. The result has the shape of `scores`. A table of n × n is not
# allowed: real graphs have a million nodes. Two tools: `zeros.index_add(0, index, rows)` adds each row at the place that `index` names. `start.scatter_reduce(0, index, scores, "amax")` keeps the largest
# of `start` and all that comes to a place; there, `index` has the shape of `scores`.


# %%
def softmax_over_edges(
    scores: Float[Tensor, "edges h"],
    edge_index: Int[Tensor, "2 edges"],
    n: int,
) -> Float[Tensor, "edges h"]:
    ### BEGIN SOLUTION
    target = edge_index[1]
    index = target[:, None].expand_as(scores)
    highest = scores.new_full((n, scores.shape[1]), -torch.inf)
    highest = highest.scatter_reduce(0, index, scores, "amax")
    weights = (scores - highest[target]).exp()
    total = torch.zeros_like(highest).index_add(0, target, weights)
    return weights / total[target]
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:softmax_over_edges", "points:6"]
check(softmax_over_edges)

# %%
# hint("softmax_over_edges")
# solution("softmax_over_edges")

# %% [markdown]
# ## 8 · GCN is attention that never learns where to look
#
# `★★★ · 10 min · with it you can say in one sentence what graph attention adds to a GCN, and test whether it was worth it`
#
# A graph convolutional network (GCN; Kipf and Welling 2016, arXiv:1609.02907) gives the edge j → i the fixed weight $1 / \sqrt{d_i d_j}$. The graph has each edge both ways and a self-loop at each node, and
# the degree $d_i$ counts the edges that lead to i, self-loop included. These weights do not sum to 1, an attention's do. So **find scores, one for each edge, of which the softmax over the edges to one node makes GCN's weights,
# divided by their sum at that node.** Several answers are right, since a softmax sees differences only.
#
# `edge_index[1].bincount(minlength=n)` counts.


# %%
def gcn_scores(edge_index: Int[Tensor, "2 edges"], n: int) -> Float[Tensor, " edges"]:
    ### BEGIN SOLUTION
    source, target = edge_index
    degree = target.bincount(minlength=n)
    return -0.5 * degree[source].log()  # the target's own degree cancels
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:gcn_scores", "points:6"]
check(gcn_scores)

# %%
# hint("gcn_scores")
# solution("gcn_scores")

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
#
# </details>
