"""Graphs whose nodes have classes, few of them known: a real one, and generated ones in which edges mean what
they are told to.

    karate      34 members of a karate club and who met whom outside it (78 pairs); a quarrel split them in
                two. Known: the two leaders
    blocks      a stochastic block model: most edges lead to the own class; a node's features only say which
                node it is
    opposites   the same, but most edges lead to ANOTHER class (heterophily), and features carry the class,
                with noise

Every edge is listed both ways, once, and there are no self-loops. Drawn with a CPU generator, on the CPU.
Source: Zachary 1977, An information flow model for conflict and fission in small groups, as networkx has it;
Holland, Laskey & Leinhardt 1983, Stochastic blockmodels: first steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require

LEADERS = (0, 33)
# of the 34 members, for pictures: their Kamada-Kawai layout, written down so that it is the same everywhere
PLACES = [
    (3, 33), (-15, 25), (7, 0), (15, 23), (19, 57), (19, 68), (0, 69), (28, 21), (-18, -1), (7, -29),
    (38, 53), (-19, 63),
    (43, 38), (-9, 5), (-50, -31), (-47, -43), (16, 100), (-28, 51), (-40, -53), (-28, 7), (-29, -62),
    (-37, 44), (-16, -64),
    (24, -52), (57, -30), (55, -17), (-5, -76), (28, -29), (19, -29), (7, -62), (-38, -9), (20, -7),
    (-17, -31), (-10, -34),
]  # fmt: skip


class NodeTask(NamedTuple):
    """A graph, its nodes' features and classes, and which nodes' classes may be trained on; all others are to
    be found."""

    name: str
    edge_index: Int[Tensor, "2 edges"]  # sources, targets
    x: Float[Tensor, "n d"]
    y: Int[Tensor, " n"]
    known: Int[Tensor, " k"]
    places: Float[Tensor, "n 2"]  # for pictures
    classes: tuple[str, ...]


def karate(known: Sequence[int] = LEADERS) -> NodeTask:
    """The karate club: which of its two leaders does each member follow after the split? Features say who a
    member is, no more.

    `known` are the members whose side may be trained on. Raises ValueError where one is no member.
    """
    import networkx

    for member in known:
        require.whole(at_least=0, at_most=len(PLACES) - 1, known=member)
    club = networkx.karate_club_graph()
    classes = ("Mr. Hi", "Officer")
    return NodeTask(
        "club",
        _both_ways(torch.tensor(list(club.edges), device="cpu").T),
        torch.eye(len(PLACES), device="cpu"),
        torch.tensor([classes.index(club.nodes[i]["club"]) for i in range(len(PLACES))], device="cpu"),
        torch.tensor(list(known), dtype=torch.long, device="cpu"),
        torch.tensor(PLACES, device="cpu") / 100,
        classes,
    )


def blocks(
    seed: int = 0,
    n: int = 240,
    *,
    n_classes: int = 4,
    degree: int | float = 8,
    within: int | float = 0.7,
    labelled: int = 5,
) -> NodeTask:
    """n nodes in classes of equal size, of mean degree `degree`; the share `within` of the edges stays, on
    average, inside a class.

    Features are the unit vectors: they tell nodes apart and nothing else. `labelled` nodes of each class are
    known, drawn at random.
    Raises ValueError for numbers that no such graph can have.
    """
    _check(n, n_classes, degree, within, labelled)
    generator = torch.Generator("cpu").manual_seed(seed)
    y = torch.arange(n, device="cpu") * n_classes // n
    edge_index = _edges(generator, y, n_classes, degree, within)
    known = _known(generator, y, n_classes, labelled)
    places = _places(generator, y, n_classes)
    return NodeTask("blocks", edge_index, torch.eye(n, device="cpu"), y, known, places, _names(n_classes))


def opposites(
    seed: int = 0,
    n: int = 240,
    *,
    n_classes: int = 2,
    degree: int | float = 8,
    within: int | float = 0.1,
    noise: int | float = 1.0,
    labelled: int = 10,
) -> NodeTask:
    """As `blocks`, with features that carry the class: its unit vector, and normal noise of that standard
    deviation.

    So a node could be judged by itself, edges apart. Raises ValueError for numbers that no such graph can
    have.
    """
    task = blocks(seed, n, n_classes=n_classes, degree=degree, within=within, labelled=labelled)
    require.number(noise=noise)
    generator = torch.Generator("cpu").manual_seed(seed + 1_000_000)
    drawn = torch.randn(n, n_classes, generator=generator, device="cpu")
    x = torch.nn.functional.one_hot(task.y, n_classes) + noise * drawn
    return task._replace(name="opposites", x=x)


def _both_ways(pairs: Tensor) -> Tensor:
    return torch.cat([pairs, pairs.flip(0)], 1)


def _edges(
    generator: torch.Generator, y: Tensor, n_classes: int, degree: int | float, within: int | float
) -> Tensor:
    """Each pair of nodes is joined or not, by a probability for pairs of one class and one for others."""
    n = len(y)
    size = n / n_classes
    same, other = degree * within / (size - 1), degree * (1 - within) / (n - size)
    probability = torch.where(y[:, None] == y, same, other)
    drawn = torch.rand(n, n, generator=generator, device="cpu") < probability
    return _both_ways(drawn.triu(1).nonzero().T)


def _known(generator: torch.Generator, y: Tensor, n_classes: int, labelled: int) -> Tensor:
    chosen = []
    for label in range(n_classes):
        nodes = (y == label).nonzero()[:, 0]
        chosen.append(nodes[torch.randperm(len(nodes), generator=generator, device="cpu")[:labelled]])
    return torch.cat(chosen)


def _places(generator: torch.Generator, y: Tensor, n_classes: int) -> Tensor:
    """A cloud for each class, the clouds on a circle."""
    angle = 2 * torch.pi * y / n_classes
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.3 * torch.randn(
        len(y), 2, generator=generator, device="cpu"
    )


def _names(n_classes: int) -> tuple[str, ...]:
    return tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n_classes])


def _check(n: int, n_classes: int, degree: int | float, within: int | float, labelled: int) -> None:
    require.whole(at_least=4, n=n)
    require.whole(at_least=2, n_classes=n_classes)
    require.whole(labelled=labelled)
    if n_classes > 26 or n % n_classes or n < 2 * n_classes:
        raise ValueError(
            f"n = {n} nodes cannot be cut into {n_classes} equal classes of two or more (26 classes at most);"
            " change n or n_classes"
        )
    if labelled > n // n_classes:
        raise ValueError(f"labelled = {labelled} is more than a class has nodes ({n // n_classes})")
    require.number(degree=degree)
    require.number(at_most=1, within=within)
    size = n // n_classes
    if within > 1 or degree * within > size - 1 or degree * (1 - within) > n - size:
        raise ValueError(
            f"degree = {degree} with the share within = {within} (0 to 1) asks for more neighbours than there"
            f" are ({size - 1} of the own class, {n - size} others); lower degree"
        )
