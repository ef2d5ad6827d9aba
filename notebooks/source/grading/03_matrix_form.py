"""Hidden inputs of the exercises in 03_matrix_form, of other sizes than its checks show."""


def without_loops(drawn):
    shapes = {"query": (11, 5), "key": (13, 5), "value": (13, 3)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def mix_in_columns(drawn):
    return [
        {"V": drawn(1, n, 11), "A_prime": drawn(2, 11, 11).softmax(0)} for n in (5, 11)
    ]


def attention_in_columns(drawn):
    shapes = {"I": (7, 11), "W_q": (3, 7), "W_k": (3, 7), "W_v": (5, 7)}
    return [
        {
            name: drawn(i, *shape, spread=0.8)
            for i, (name, shape) in enumerate(shapes.items())
        }
    ]
