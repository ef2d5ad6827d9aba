"""Hidden inputs of the exercises in 11_efficient_attention, of other sizes than its checks show."""


def merge_two(drawn):
    shapes = {
        "output_a": (7, 5),
        "log_sum_a": (7,),
        "output_b": (7, 5),
        "log_sum_b": (7,),
    }
    case = {name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    return [case, {**case, "log_sum_b": case["log_sum_a"] + 150 * drawn(5, 7)}]


def one_pass(drawn):
    scores, value = 3 * drawn(1, 5, 13), drawn(2, 13, 3)
    return [{"scores": scores, "value": value, "tile": tile} for tile in (4, 1)]


def grouped_query(drawn):
    shapes = {"query": (12, 3, 5), "key": (4, 7, 5), "value": (4, 7, 3)}
    return [{name: drawn(i, *shape) for i, (name, shape) in enumerate(shapes.items())}]


def low_rank(drawn):
    shapes = {
        "query": (11, 5),
        "key": (11, 5),
        "value": (11, 3),
        "E": (4, 11),
        "F": (4, 11),
    }
    return [
        {
            name: drawn(i, *shape, spread=0.7)
            for i, (name, shape) in enumerate(shapes.items())
        }
    ]
