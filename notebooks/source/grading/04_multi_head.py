"""Hidden inputs of the exercises in 04_multi_head, of other sizes than its checks show."""


def heads_apart(drawn):
    return [
        {"x": drawn(1, 11, 12), "n_heads": 4},
        {"x": drawn(2, 3, 7, 15), "n_heads": 3},
    ]


def heads_together(drawn):
    return [{"heads": drawn(1, 5, 11, 3)}, {"heads": drawn(2, 3, 4, 7, 2)}]


def many_heads(drawn):
    shapes = {
        "x": (11, 5),
        "w_query": (5, 12),
        "w_key": (5, 12),
        "w_value": (5, 8),
        "w_output": (8, 5),
    }
    case = {
        name: drawn(i, *shape, spread=0.7)
        for i, (name, shape) in enumerate(shapes.items())
    }
    return [{**case, "n_heads": 4}]


def may_look(drawn):
    return [
        {"attn_mask": drawn(1, 5, 11) > 0.5, "key_padding_mask": drawn(2, 3, 11) > 1}
    ]
