"""Hidden inputs of the exercises in 06_transformer, of other sizes than its checks show."""

import torch


def norm_of_tokens(drawn):
    x, weight, bias = drawn(1, 3, 11, 7), drawn(2, 7), drawn(3, 7)
    return [{"x": x, "weight": weight, "bias": bias, "eps": 0.02}]


def pre_norm_stack(drawn):
    sublayers = (torch.tanh, lambda x: x.cumsum(0), torch.relu)
    return [
        {
            "x": drawn(1, 11, 7),
            "sublayers": sublayers,
            "norm": lambda x: x - x.mean(-1, keepdim=True),
        }
    ]


def forced_loss(drawn):
    logits, target = (
        drawn(1, 11, 11),
        2 + (2 * drawn(2, 4, 7).abs()).long().clamp(max=8),
    )
    target[1, 3:], target[3, 5:] = 0, 0
    return [
        {
            "decode": lambda before: logits[before],
            "target": target,
            "start": 1,
            "filler": 0,
        }
    ]


def greedy_words(drawn):
    logits = drawn(1, 13, 13)
    begin = (3 * drawn(2, 4).abs()).long().clamp(max=12)
    return [
        {
            "score_next": lambda words: logits[words].cumsum(0)[-1],
            "begin": begin,
            "end": end,
            "most": 9,
        }
        for end in (0, 5)
    ]


def k_best_probabilities(drawn):
    return [{"logits": 3 * drawn(1, 5, 11), "temperature": 0.7, "k": 4}]
