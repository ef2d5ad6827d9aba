"""A small DETR: all objects of a picture found at once, by learned queries that look at a grid of a CNN's
features.

Convolutions make a grid of features; an encoder lets its cells look at each other; a decoder turns learned
object queries into one guess each: a kind, or "no object", and a box. Nothing says which query is to find
which object: while it trains, each object goes to one query of its own, so that the sum of the costs is the
smallest (the Hungarian method), and the other queries learn to say "no object". So the loss does not depend
on the order in which objects are listed, and no step removes duplicates afterwards.

    what the matching makes small:
        cost(query, object) = 5 · |box - box'|_1 - 2 · GIoU(box, box') - 4 · p(kind)
    of the pairs that it found:
        loss = 5 · |box - box'|_1 + 2 · (1 - GIoU(box, box')) + 4 · cross-entropy

As published: the matching by probabilities (the loss takes their logarithms), weights 5 and 2, boxes divided
by the number of objects, the same heads and a loss for every decoder layer. Departures: kinds count 4
(published 1), since here boxes are learned long before kinds; "no object" counts 0.7 of a kind (published
0.1), since two of five queries find something; a stem of four convolutions, trained from scratch, for a
ResNet; pre-norm; learned positions, small, added once to the features (so also to values), where the paper
adds sines to the queries and keys of each layer; the queries are the decoder's input, where the paper adds
them in each layer to an input of zeros; no dropout.
Source: Carion, Massa, Synnaeve, Usunier, Kirillov & Zagoruyko 2020, arXiv:2005.12872; GIoU: Rezatofighi et
al. 2019, arXiv:1902.09630.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.blocks import Decoder, Encoder
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS, NONE, SIZE, Objects
from lesson_lib.positions import Learned

WEIGHTS = {"kind": 4.0, "box": 5.0, "giou": 2.0}
NO_OBJECT = 0.7  # how much a query that finds nothing counts in the cross-entropy
CELL = 4  # pixels of the side of a cell
OVERLAP = 0.5  # the IoU from which on a box is right


class Detections(NamedTuple):
    """What the queries found: logits of the kinds, the last one of "no object"; boxes (centre x, centre y,
    width, height) in 0 ... 1.

    `weights` says where each query looked in the last decoder layer, cell by cell, row by row (None where
    that was not asked for); `maps` makes pictures of it. `earlier` holds what the heads make of the decoder
    layers before the last.
    """

    logits: Float[Tensor, "b q kinds_and_none"]
    boxes: Float[Tensor, "b q 4"]
    weights: Float[Tensor, "b h q cells"] | None = None
    earlier: tuple["Detections", ...] = ()


class Truth(NamedTuple):
    """A batch to learn from: canvases, their objects' kinds (NONE where there is none) and boxes as
    in Detections."""

    canvas: Float[Tensor, "b c side side"]
    kind: Int[Tensor, "b most"]
    boxes: Float[Tensor, "b most 4"]


class Maps(NamedTuple):
    """Where queries looked, as pictures: of each head (b, h, q, rows, columns), and the mean over heads (b,
    q, rows, columns)."""

    heads: Float[Tensor, "b h q rows columns"]
    mean: Float[Tensor, "b q rows columns"]


class Detection(NamedTuple):
    """An object found: its kind (an index into KINDS), the probability, a box (left, top, right, bottom) in
    pixels, and the query that found it."""

    kind: int
    confidence: float
    box: tuple[float, float, float, float]
    query: int


class Hit(NamedTuple):
    """A detection that is right: its number in the list, the number of the object, and the IoU of their
    boxes."""

    detection: int
    object: int
    iou: float


class Score(NamedTuple):
    """Shares of objects found and of detections that are right, and the mean IoU of the right ones; 0 where
    there is nothing to count."""

    recall: float
    precision: float
    iou: float


class Detr(nn.Module):
    """Kinds and boxes of the objects on a square canvas: `n_queries` guesses, from a grid of cells 4 pixels
    wide.

    Kernels of the stem are 3 x 3; `n_encoder=0` leaves the encoder out. Parameters: those of the stem, the
    Encoder and the Decoder; (cells + n_queries + 2) · d_model for positions, queries and the stem's norm;
    (d_model + 1) · (kinds + 1) and d_model · (d_model + 1) + 4 · (d_model + 1) in the heads.
    Raises ValueError where `side` is no multiple of 4, d_model none of n_heads, or a count is too small.
    """

    def __init__(
        self,
        n_queries: int = 5,
        *,
        side: int = SIZE,
        c_in: int = 1,
        d_model: int = 48,
        n_heads: int = 4,
        d_inner: int = 96,
        n_encoder: int = 1,
        n_decoder: int = 2,
    ) -> None:
        super().__init__()
        require.whole(n_queries=n_queries, side=side, c_in=c_in, d_model=d_model)
        if side % CELL:
            raise ValueError(f"side must be a multiple of {CELL} pixels, the width of a cell, got {side}")
        self.side, self.grid = side, (side // CELL, side // CELL)
        self.stem = _stem(c_in, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.positions = Learned(self.grid[0] * self.grid[1], d_model)
        # small against the features, which also are the values: large positions hide what kind of shape it is
        nn.init.normal_(self.positions.table, std=0.04)
        sizes = (d_model, n_heads, d_inner)
        self.encoder = Encoder(n_encoder, *sizes, dropout=0.0, norm_first=True) if n_encoder != 0 else None
        self.decoder = Decoder(n_decoder, *sizes, dropout=0.0, norm_first=True)
        self.queries = nn.Parameter(0.3 * torch.randn(n_queries, d_model))
        self.kind = nn.Linear(d_model, len(KINDS) + 1)
        self.box = nn.Sequential(nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, 4))

    def forward(self, canvas: Float[Tensor, "b c side side"], *, weights: bool = False) -> Detections:
        """What each query found, and where it looked if `weights` is True. Raises ValueError for canvases of
        another shape."""
        wanted = (self.stem[0].in_channels, self.side, self.side)
        if not isinstance(canvas, Tensor) or canvas.ndim != 4 or canvas.shape[1:] != wanted:
            got = tuple(canvas.shape) if isinstance(canvas, Tensor) else type(canvas).__name__
            raise ValueError(
                f"canvas must have the shape (batch, {', '.join(map(str, wanted))}), got {got}; the scenes'"
                " need an axis: canvas[:, None]"
            )
        memory = self.memory(canvas)
        queries = self.queries.expand(len(canvas), -1, -1)
        _, tables, stream = self.decoder(queries, memory, weights=True)
        *earlier, last = map(self._heads, stream[1:])
        return last._replace(weights=tables[-1].cross if weights else None, earlier=tuple(earlier))

    def memory(self, canvas: Float[Tensor, "b c side side"]) -> Float[Tensor, "b cells d_model"]:
        """The cells that queries look at, row by row."""
        cells = self.norm(self.stem(canvas).flatten(2).mT) + self.positions(self.grid[0] * self.grid[1])
        return cells if self.encoder is None else self.encoder(cells).output

    def _heads(self, tokens: Tensor) -> Detections:
        tokens = self.decoder.norm(tokens)
        return Detections(self.kind(tokens), self.box(tokens).sigmoid())


def truth(scenes: Objects) -> Truth:
    """Scenes as the loss takes them: an axis for channels, boxes as centre, width and height, in shares of
    the canvas' side.

    >>> scenes = Objects(torch.zeros(1, 24, 24), torch.tensor([[2]]), torch.tensor([[[6, 0, 12, 6]]]))
    >>> truth(scenes).boxes.tolist()
    [[[0.375, 0.125, 0.25, 0.25]]]
    """
    low, high = scenes.box.float().split(2, -1)
    boxes = torch.cat([(low + high) / 2, high - low], -1) / scenes.canvas.shape[-1]
    return Truth(scenes.canvas[:, None], scenes.kind, boxes)


def corners(boxes: Float[Tensor, "*b 4"]) -> Float[Tensor, "*b 4"]:
    """(left, top, right, bottom) of boxes given as (centre x, centre y, width, height), in the same unit."""
    _four(boxes=boxes)
    middle, size = boxes.split(2, -1)
    return torch.cat([middle - size / 2, middle + size / 2], -1)


def iou(one: Float[Tensor, "*#b 4"], other: Float[Tensor, "*#b 4"]) -> Float[Tensor, "*b"]:
    """Area in both boxes over the area in either, box by box; 0 where they do not touch. Boxes are (left,
    top, right, bottom).

    >>> iou(torch.tensor([0.0, 0, 2, 1]), torch.tensor([1.0, 0, 2, 1])).item()
    0.5
    """
    shared, either, _ = _areas(one, other)
    return shared / either.clamp(min=1e-9)


def giou(one: Float[Tensor, "*#b 4"], other: Float[Tensor, "*#b 4"]) -> Float[Tensor, "*b"]:
    """IoU minus the share of the smallest box around both that lies in neither: -1 ... 1, and lower the
    farther apart they are.

    Where two boxes do not touch, IoU is 0 and has no gradient; this has one.
    Source: Rezatofighi et al. 2019, arXiv:1902.09630.
    """
    shared, either, hull = _areas(one, other)
    return shared / either.clamp(min=1e-9) - (hull - either) / hull.clamp(min=1e-9)


def costs(
    found: Detections, kind: Int[Tensor, "b most"], boxes: Float[Tensor, "b most 4"]
) -> Float[Tensor, "b q most"]:
    """What it costs to give each object to each query; the columns where there is no object mean nothing.

    Raises ValueError for kinds and boxes that do not belong together, or for more places than there are
    queries.
    """
    _fits(found, kind, boxes)
    shares = F.log_softmax(found.logits, -1).exp()
    right = shares.gather(-1, kind.clamp(min=0)[:, None].expand(-1, shares.shape[1], -1))
    far = (found.boxes[:, :, None] - boxes[:, None]).abs().sum(-1)
    overlap = giou(corners(found.boxes)[:, :, None], corners(boxes)[:, None])
    return WEIGHTS["box"] * far - WEIGHTS["giou"] * overlap - WEIGHTS["kind"] * right


@torch.no_grad()
def match(
    found: Detections, kind: Int[Tensor, "b most"], boxes: Float[Tensor, "b most 4"]
) -> Int[Tensor, "b most"]:
    """The query of each object, another one for each, so that the sum of the costs is the smallest; NONE
    where there is no object.

    Raises ValueError as `costs` does, and where a cost is not finite.
    """
    from scipy.optimize import linear_sum_assignment  # here, since it is large and only training needs it

    tables = costs(found, kind, boxes).cpu()  # all of them at once: the Hungarian method runs on the CPU
    there = (kind != NONE).cpu()
    if not tables.transpose(1, 2)[there].isfinite().all():
        raise ValueError(
            "a cost is not finite, so there is nothing to match; look for nan in the logits and boxes"
        )
    chosen = torch.full(kind.shape, NONE, device="cpu")
    for row, table, real in zip(chosen, tables, there, strict=True):
        queries, places = linear_sum_assignment(table[:, real].numpy())
        row[real.nonzero()[:, 0][torch.from_numpy(places)]] = torch.from_numpy(queries)
    return chosen.to(kind.device)


def in_order(kind: Int[Tensor, "b most"]) -> Int[Tensor, "b most"]:
    """The ablation in the place of `match`: object k of the list goes to query k, whatever that query
    found."""
    return torch.arange(kind.shape[1], device=kind.device).expand_as(kind).where(kind != NONE, NONE)


def set_loss(
    found: Detections,
    kind: Int[Tensor, "b most"],
    boxes: Float[Tensor, "b most 4"],
    query: Int[Tensor, "b most"],
) -> Float[Tensor, ""]:
    """The loss of one decoder layer, where `query` (from `match`) says which query is to find each object.

    Cross-entropy runs over all queries, those without an object count NO_OBJECT each; boxes over the objects.
    Without any object only the cross-entropy is left. Raises ValueError as `costs` does, and where an object
    has no query.
    """
    _fits(found, kind, boxes)
    if query.shape != kind.shape or (query[kind != NONE] < 0).any():
        raise ValueError(
            f"query must name a query for each object, shape {tuple(kind.shape)}, got {query.tolist()}; use"
            " match(found, kind, boxes)"
        )
    image, place = (kind != NONE).nonzero(as_tuple=True)
    at = image, query[image, place]
    wanted = torch.full(found.logits.shape[:2], len(KINDS), device=kind.device)
    wanted[at] = kind[image, place]
    counts = torch.ones(len(KINDS) + 1, device=kind.device)
    counts[-1] = NO_OBJECT
    kinds = F.cross_entropy(found.logits.transpose(1, 2), wanted, counts)
    mine, theirs = found.boxes[at], boxes[image, place]
    far, overlap = (mine - theirs).abs().sum(-1), giou(corners(mine), corners(theirs))
    box = (WEIGHTS["box"] * far + WEIGHTS["giou"] * (1 - overlap)).sum() / max(1, len(image))
    return WEIGHTS["kind"] * kinds + box


def loss(model: Detr, batch: Truth, *, matched: bool = True) -> Float[Tensor, ""]:
    """Sum of the layers' losses, each layer matched for itself; `matched=False` gives the objects to the
    queries `in_order`."""
    found = model(batch.canvas)
    objects = batch.kind, batch.boxes
    return sum(
        set_loss(layer, *objects, match(layer, *objects) if matched else in_order(batch.kind))
        for layer in (found, *found.earlier)
    )


def maps(weights: Float[Tensor, "b h q cells"], grid: tuple[int, int]) -> Maps:
    """`Detections.weights` on the grid of the model (`model.grid`: rows, columns), by head and averaged. A
    cell is CELL pixels wide.

    Raises ValueError where there are no weights, or not as many as cells.
    """
    if not isinstance(weights, Tensor):
        raise ValueError(
            f"weights must be those of a Detections, got {weights!r}; call the model with weights=True"
        )
    if weights.shape[-1] != grid[0] * grid[1]:
        raise ValueError(
            f"a grid of {grid[0]} x {grid[1]} cells does not fit {weights.shape[-1]} weights; use model.grid"
        )
    heads = weights.unflatten(-1, grid)
    return Maps(heads, heads.mean(1))


def detections(found: Detections, *, threshold: float | int = 0.5, size: int = SIZE) -> list[list[Detection]]:
    """The objects found in each image, the surest first: queries whose likeliest kind has more than
    `threshold` of the probability.

    `size` is the side of the canvas in pixels. Raises ValueError where the threshold is not in 0 ... 1.
    """
    require.number(at_most=1, threshold=threshold)
    require.whole(size=size)
    shares, kinds = F.log_softmax(found.logits.detach(), -1).exp()[..., :-1].max(-1)
    table = zip(shares.tolist(), kinds.tolist(), (corners(found.boxes.detach()) * size).tolist(), strict=True)
    return [
        sorted(
            (
                Detection(kind, share, tuple(box), query)
                for query, (share, kind, box) in enumerate(zip(*image, strict=True))
                if share > threshold
            ),
            key=lambda one: -one.confidence,
        )
        for image in table
    ]


def hits(detected: list[Detection], kind: Int[Tensor, " most"], box: Int[Tensor, "most 4"]) -> list[Hit]:
    """Which detections of ONE image are right: of the right kind, IoU at least 0.5, and the first to claim
    their object.

    Detections come in their order, the surest first, and take the free object that they overlap most; so a
    second box on an object is wrong.
    """
    free = {place for place, one in enumerate(kind.tolist()) if one != NONE}
    right = []
    for number, one in enumerate(detected):
        overlaps = iou(torch.tensor(one.box, device="cpu"), box.cpu().float()).tolist()
        fitting = [p for p in free if kind[p] == one.kind and overlaps[p] >= OVERLAP]
        if fitting:
            best = max(fitting, key=lambda place: overlaps[place])
            free.remove(best)
            right.append(Hit(number, best, overlaps[best]))
    return right


def score(detected: list[list[Detection]], scenes: Objects) -> Score:
    """Recall, precision and mean IoU over all images together. Raises ValueError unless there is a list for
    each scene."""
    if len(detected) != len(scenes.kind):
        raise ValueError(
            f"there are {len(detected)} lists of detections and {len(scenes.kind)} scenes; one list per scene"
        )
    right = [hit for row in zip(detected, scenes.kind, scenes.box, strict=True) for hit in hits(*row)]
    objects, guesses = int((scenes.kind != NONE).sum()), sum(map(len, detected))
    overlap = sum(hit.iou for hit in right)
    return Score(
        recall=len(right) / max(1, objects),
        precision=len(right) / max(1, guesses),
        iou=overlap / max(1, len(right)),
    )


def _stem(c_in: int, d_model: int) -> nn.Sequential:
    """Four convolutions, the second and third with stride 2: cells of 4 pixels, each of which sees 17
    x 17."""
    widths = (c_in, (d_model + 2) // 3, (2 * d_model + 2) // 3, d_model, d_model)
    layers = []
    for width, wider, stride in zip(widths, widths[1:], (1, 2, 2, 1), strict=False):
        layers += [nn.Conv2d(width, wider, 3, stride, 1), nn.ReLU()]
    return nn.Sequential(*layers)


def _areas(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Areas in both boxes, in either, and of the smallest box around both."""
    _four(one=one, other=other)
    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(one[..., :2], other[..., :2])
    around = torch.maximum(one[..., 2:], other[..., 2:]) - torch.minimum(one[..., :2], other[..., :2])
    shared = sides.clamp(min=0).prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (one, other)]
    return shared, sum(areas) - shared, around.prod(-1)


def _four(**boxes: Tensor) -> None:
    for name, box in boxes.items():
        if not isinstance(box, Tensor) or box.ndim < 1 or box.shape[-1] != 4:
            got = tuple(box.shape) if isinstance(box, Tensor) else type(box).__name__
            raise ValueError(f"{name} must hold four numbers per box, shape (..., 4), got {got}")


def _fits(found: Detections, kind: Tensor, boxes: Tensor) -> None:
    batch, queries = found.logits.shape[:2]
    if kind.ndim != 2 or len(kind) != batch or boxes.shape != (*kind.shape, 4):
        raise ValueError(
            f"kind must have the shape ({batch}, most) and boxes ({batch}, most, 4), got {tuple(kind.shape)}"
            f" and {tuple(boxes.shape)}; truth(scenes) makes both"
        )
    if kind.shape[1] > queries:
        raise ValueError(
            f"there are {kind.shape[1]} places for objects and only {queries} queries; each object needs a"
            f" query of its own: n_queries={kind.shape[1]}"
        )
