"""Hidden inputs of the exercises in 08_attention_vs_rnn, of other sizes than its checks show."""


def gru_step(drawn):
    shapes = {
        "x": (3, 7),
        "state": (3, 5),
        "W": (15, 7),
        "U": (15, 5),
        "b": (15,),
        "c": (15,),
    }
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def fading_attention(drawn):
    return [
        {
            "query": drawn(1, 11, 5),
            "key": drawn(2, 11, 5),
            "value": drawn(3, 11, 3),
            "decay": decay,
        }
        for decay in (0.9, 0.3)
    ]


def states_at_once(drawn):
    return [{"a": drawn(1, n, 3).sigmoid(), "b": drawn(2, n, 3)} for n in (13, 16)]
