"""Hidden inputs of the exercises in 07_attention_vs_cnn, of other sizes than its checks show."""

import torch


def nine_heads(drawn):
    places = torch.cartesian_prod(
        torch.arange(6.0), torch.arange(5.0)
    )  # with the border
    inner = torch.cartesian_prod(torch.arange(1.0, 5.0), torch.arange(1.0, 4.0))
    return [
        {
            "pixels": drawn(1, 30, 5),
            "d": places[None] - inner[:, None],
            "kernel": drawn(2, 3, 5, 3, 3),
            "sharpness": sharpness,
        }
        for sharpness in (0.4, 30.0)
    ]


def patch_rows(drawn):
    return [
        {"images": drawn(1, 3, 2, 8, 12), "patch": 4},
        {"images": drawn(2, 1, 5, 10, 5), "patch": 5},
    ]


def sagan_block(drawn):
    shapes = {"x": (2, 5, 4, 3), "w_q": (3, 5), "w_k": (3, 5), "w_v": (5, 5)}
    case = {
        name: drawn(i, *shape, spread=0.7)
        for i, (name, shape) in enumerate(shapes.items())
    }
    return [{**case, "gamma": -1.3}]


def cheapest_match(drawn):
    return [{"cost": drawn(1, 4, 4)}, {"cost": drawn(2, 4, 6)}]
