"""Hidden inputs of the exercises in 05_positional_encoding, of other sizes than its checks show."""


def waves(drawn):
    return [{"positions": (10 * drawn(1, 11)).round().abs(), "d": 10}]


def shift_matrix(drawn):
    return [{"delta": drawn(1, 1).item(), "frequencies": drawn(2, 5).abs()}]


def offset_rows(drawn):
    queries, keys = (5 * drawn(1, 4)).long() + 40, (5 * drawn(2, 11)).long() + 40
    return [{"query_positions": queries, "key_positions": keys, "radius": 4}]


def turned(drawn):
    return [
        {
            "x": drawn(1, 3, 2, 11, 8),
            "positions": (5 * drawn(2, 11)).round(),
            "frequencies": drawn(3, 4).abs(),
        }
    ]
