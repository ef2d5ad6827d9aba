"""Attention on graphs in plain torch: one file to copy into a project. MIT licence.

    edge_softmax       scores (e, heads) -> weights that sum to 1 over the edges of each target
    GCN, GAT, GATv2    layers: x (n, d_in), edges (2, e) -> (n, d_out), or (n, heads · d_out)
    layer.dense        the same from a table (n, n): True where row i hears column j, or itself
    Network, fit       two layers of any kind -> logits of nodes, or of whole graphs; the training loop
    split_by_group, shuffled   masks with no group on two sides; edges at random, as a control
    sampled, joined    batches: some nodes with a few of their neighbours; many graphs as one
    python graphs.py   trains on a graph that it makes, beside two controls: no edges, shuffled edges

An edge is a column (source, target): the target hears the source. Layers add self-loops. Those of PyTorch
Geometric (torch_geometric.nn) have the same arguments, names of weights and first weights:
    model = Network(GATConv(16, 8, heads=4), GATConv(32, 4))
    model.first.load_state_dict(GAT(16, 8, heads=4).state_dict())
"""

import torch
import torch.nn.functional as F
from torch import nn


def self_loops(edges, n):
    """Edges (2, e): each of the n nodes has one to itself, once."""
    return torch.cat((edges[:, edges[0] != edges[1]], torch.arange(n, device=edges.device).expand(2, n)), 1)


def edge_softmax(scores, target, n):
    """Weights (e, heads) of scores (e, heads): for each of n targets a softmax over its edges."""
    top = scores.new_full((n, scores.shape[1]), -torch.inf)  # subtracted, so that exp cannot overflow
    top = top.scatter_reduce(0, target[:, None].expand_as(scores), scores.detach(), "amax")
    shares = (scores - top[target]).exp()
    return shares / torch.zeros_like(top).index_add(0, target, shares)[target]


class GCN(nn.Module):
    """The sum over edges j -> i of W x_j / sqrt(d_i d_j); the degree d counts the edges that arrive."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin, self.bias = nn.Linear(d_in, d_out, bias=False), nn.Parameter(torch.zeros(d_out))
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, x, edges):
        source, target = self_loops(edges, len(x))
        z, root = self.lin(x), target.bincount(minlength=len(x)).to(x.dtype).rsqrt()
        messages = (root[source] * root[target])[:, None] * z[source]
        return torch.zeros_like(z).index_add(0, target, messages) + self.bias

    def dense(self, x, mask):
        root = mask.sum(1).to(x.dtype).rsqrt()
        return (root[:, None] * mask * root) @ self.lin(x) + self.bias


class GAT(nn.Module):
    """score_ij = LeakyReLU(a_dst · z_i + a_src · z_j), z = W x: Velickovic et al. 2017."""

    def __init__(self, d_in, d_out, heads=1, concat=True):
        super().__init__()
        self.heads, self.concat = heads, concat  # heads stand side by side, or their mean is taken
        self.bias = nn.Parameter(torch.zeros(heads * d_out if concat else d_out))
        self.build(d_in, (1, heads, d_out))
        for name, weight in self.named_parameters():
            nn.init.zeros_(weight) if "bias" in name else nn.init.xavier_uniform_(weight.flatten(0, -2))

    def build(self, d_in, shape):
        self.lin = nn.Linear(d_in, shape[1] * shape[2], bias=False)
        self.att_src, self.att_dst = (nn.Parameter(torch.empty(shape)) for _ in range(2))

    def terms(self, x):
        """What a node adds to a score as target, and as source; and what it says as source."""
        z = self.lin(x).unflatten(-1, (self.heads, -1))  # (n, heads, d_out)
        return (z * self.att_dst).sum(-1), (z * self.att_src).sum(-1), z

    def score(self, summed):
        return F.leaky_relu(summed, 0.2)

    def forward(self, x, edges, return_attention_weights=False):
        source, target = edges = self_loops(edges, len(x))
        asks, answers, z = self.terms(x)
        weights = edge_softmax(self.score(asks[target] + answers[source]), target, len(x))
        out = torch.zeros_like(z).index_add(0, target, weights[..., None] * z[source])
        out = (out.flatten(1) if self.concat else out.mean(1)) + self.bias
        return (out, (edges, weights)) if return_attention_weights else out

    def dense(self, x, mask):
        asks, answers, z = self.terms(x)
        scores = self.score(asks[:, None] + answers).masked_fill(~mask[..., None], -torch.inf)
        out = torch.einsum("ijh,jhd->ihd", scores.softmax(1), z)
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


class GATv2(GAT):
    """score_ij = a · LeakyReLU(W_r x_i + W_l x_j): Brody et al. 2021. Targets may rank differently."""

    def build(self, d_in, shape):
        self.lin_l, self.lin_r = (nn.Linear(d_in, shape[1] * shape[2]) for _ in range(2))
        self.att = nn.Parameter(torch.empty(shape))

    def terms(self, x):
        asks, z = (lin(x).unflatten(-1, (self.heads, -1)) for lin in (self.lin_r, self.lin_l))
        return asks, z, z

    def score(self, summed):
        return (F.leaky_relu(summed, 0.2) * self.att).sum(-1)


class Network(nn.Module):
    """Logits of nodes; or of graphs, if graph (n,) has the number of each node's graph, in rising order."""

    def __init__(self, first, last, dropout=0.5):
        super().__init__()
        self.first, self.last, self.dropout = first, last, dropout

    def forward(self, x, edges, graph=None):
        z = self.last(F.dropout(F.elu(self.first(x, edges)), self.dropout, self.training), edges)
        return z if graph is None else torch.stack([r.mean(0) for r in z.split(graph.bincount().tolist())])


def split_by_group(group, y, fold=0):
    """Masks (n,): of five groups of a class three train, one validates, one tests (each once in 5 folds)."""
    label = y.new_zeros(int(group.max()) + 1).scatter(0, group, y)  # of a group: that of one of its nodes
    order = torch.randperm(len(label), generator=torch.Generator().manual_seed(0)).to(y.device)
    order = order[label[order].argsort(stable=True)]  # class by class, at random within each
    dealt = [order[(k + fold) % 5 :: 5] for k in range(5)]
    return [torch.isin(group, torch.cat(some)) for some in (dealt[:3], dealt[3:4], dealt[4:])]


def shuffled(edges, share=1.0, seed=0):
    """The edges, a share of which exchange targets at random: each node keeps its edges in number."""
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(seed))
    order, target = order[: round(share * len(order))], edges[1].clone()
    target[order.sort().values] = edges[1][order]
    return torch.stack((edges[0], target))


def sampled(edges, nodes, most, generator=None):
    """The numbers of nodes, those asked for first, and the edges among them, numbered anew. `most` says for
    each layer, from the last, how many neighbours a node hears. (A GCN's degrees are then the sample's.)"""
    numbers, new, kept = nodes, nodes, []
    for limit in most:
        into = edges[:, torch.isin(edges[1], new)]
        into = into[:, torch.randperm(into.shape[1], generator=generator)]
        into = into[:, into[1].argsort(stable=True)]  # each target's edges together, in random order
        target, place = into[1].contiguous(), torch.arange(into.shape[1], device=edges.device)
        kept.append(into[:, place - torch.searchsorted(target, target) < limit])
        new = kept[-1][0][~torch.isin(kept[-1][0], numbers)].unique()
        numbers = torch.cat((numbers, new))
    known, order = numbers.sort()
    return numbers, order[torch.searchsorted(known, torch.cat(kept, 1))]


def joined(graphs):
    """One graph of many (x, edges): x, edges, and the number of each node's graph, as Network takes them."""
    xs, edges = zip(*graphs, strict=True)
    sizes = torch.tensor([len(x) for x in xs])
    edges = [some + before for some, before in zip(edges, sizes.cumsum(0) - sizes, strict=True)]
    return torch.cat(xs), torch.cat(edges, 1), torch.arange(len(xs)).repeat_interleave(sizes)


@torch.no_grad()
def accuracy(model, x, edges, y, nodes):
    """The share of right answers among nodes, a mask (n,); each class counts the same."""
    right = (model.eval()(x, edges).argmax(-1) == y).to(x.dtype)
    return torch.stack([right[nodes & (y == k)].mean() for k in y[nodes].unique()]).mean().item()


def fit(model, x, edges, y, training, validation, size=None, most=(10, 10), steps=200, lr=1e-2, seed=0):
    """Train on a mask's nodes, or on `size` of them a step with some neighbours; keep what validates best."""
    generator, best = torch.Generator().manual_seed(seed), -1.0
    optimizer, inputs = torch.optim.Adam(model.parameters(), lr), (x, edges)
    nodes = some = rows = training.nonzero()[:, 0]
    for step in range(1, steps + 1):
        if size:
            some = nodes[torch.randperm(len(nodes), generator=generator)[:size]]
            numbers, near = sampled(edges, some, most, generator)
            inputs, rows = (x[numbers], near), slice(len(some))
        loss = F.cross_entropy(model.train()(*inputs)[rows], y[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step % 5 == 0 or step == steps) and (score := accuracy(model, x, edges, y, validation)) > best:
            best, kept = score, {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(kept)
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    y = (group := torch.arange(60).repeat_interleave(10)) % 4  # 60 groups of ten nodes, in four classes
    x = torch.cat((2 * F.one_hot(y, 4) + torch.randn(600, 4), torch.randn(60, 12)[group]), 1)
    chance = torch.where(group[:, None] == group, 0.3, torch.where(y[:, None] == y, 0.02, 0.002))
    pairs = (torch.rand(600, 600) < chance).triu(1).nonzero().T
    edges = torch.cat((pairs, pairs.flip(0)), 1)
    *parts, test = split_by_group(group, y)
    tried = {"no edges": (GAT, edges[:, :0], None), "GCN": (GCN, edges, None), "GAT": (GAT, edges, None),
             "GAT, batches": (GAT, edges, 64), "GAT, shuffled": (GAT, shuffled(edges), None)}  # fmt: skip
    for name, (kind, near, size) in tried.items():
        torch.manual_seed(0)
        model = fit(Network(kind(16, 32), kind(32, 4)), x, near, y, *parts, size)
        print(f"{name:14} {accuracy(model, x, near, y, test):.2f} of unseen nodes right")
