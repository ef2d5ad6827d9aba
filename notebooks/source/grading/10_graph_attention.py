"""Hidden inputs of the exercises in 10_graph_attention, of other sizes than its checks show."""

import torch


def _edges(drawn, n):
    """Each of all n * n edges with a chance of about a third, in no order."""
    edges = (drawn(1, n, n) > 0.4).nonzero()
    return edges[drawn(2, len(edges)).argsort()].T.contiguous()


def sum_of_messages(drawn):
    edges = _edges(drawn, 9)
    return [
        {
            "value": drawn(3, 9, 5),
            "weights": drawn(4, edges.shape[1]),
            "edge_index": edges,
        }
    ]


def attend_to_known(drawn):
    query, key, value = drawn(1, 9, 5), drawn(2, 9, 5), drawn(3, 9, 3)
    return [{"query": query, "key": key, "value": value, "knows": drawn(4, 9, 9) > 0.3}]


def path_edges(drawn):
    n = 6 + int(3 * drawn(1, 1).abs())
    return [{"n": n, "radius": radius} for radius in (1, 3)]


def softmax_over_edges(drawn):
    edges = _edges(drawn, 9)
    return [{"scores": 3 * drawn(3, edges.shape[1], 2), "edge_index": edges, "n": 9}]


def gcn_scores(drawn):
    linked = drawn(1, 9, 9) > 0.8
    linked = linked | linked.T | torch.eye(9, dtype=torch.bool)
    return [{"edge_index": linked.nonzero().T.contiguous(), "n": 9}]
