"""Hidden inputs of the exercises in 09_truncated_attention, of other sizes than its checks show."""

import torch


def layers_until(drawn):
    i, j = (9 * drawn(1, 11)).long() + 50, (9 * drawn(2, 11)).long() + 50
    return [
        {"i": i, "j": j, "before": 4, "after": 3},
        {"i": i, "j": j, "before": 2, "after": 7},
    ]


def dilated_window(drawn):
    queries, keys = (5 * drawn(1, 6)).long() + 50, (5 * drawn(2, 17)).long() + 50
    return [
        {"queries": queries, "keys": keys, "radius": 3, "step": 2},
        {"queries": torch.arange(13), "keys": torch.arange(13), "radius": 2, "step": 4},
    ]


def near_blocks(drawn):
    return [
        _recording(drawn, 13, 5, 3, radius=4),
        _recording(drawn, 17, 3, 5, radius=3),
    ]


def block_by_block(drawn):
    return [
        {**_recording(drawn, 13, 5, 3, radius=4), "block": 5},
        {**_recording(drawn, 17, 3, 5, radius=2), "block": 4},
    ]


def _recording(drawn, n, d_k, d_v, radius):
    query, key, value = drawn(n, n, d_k), drawn(n + 1, n, d_k), drawn(n + 2, n, d_v)
    return {"query": query, "key": key, "value": value, "radius": radius}
