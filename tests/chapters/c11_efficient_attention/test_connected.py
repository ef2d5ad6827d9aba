"""Paths with two marked ends: every label held by a flood fill, nothing countable gives the answer away."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from lesson_lib.chapters.c11_efficient_attention import connected


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def filled(tokens, size):
    """The patches of one picture by a flood fill of our own: sets of (row, column)."""
    todo = {divmod(i, size) for i, kind in enumerate(tokens) if kind != connected.EMPTY}
    patches = []
    while todo:
        patch, edge = set(), [todo.pop()]
        while edge:
            r, c = edge.pop()
            patch.add((r, c))
            near = {(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)} & todo
            todo -= near
            edge += near
        patches.append(patch)
    return patches


@pytest.mark.parametrize("size", [8, 11, 12, 16, 23])
def test_the_answers_are_those_of_a_flood_fill_and_the_paths_are_thin(size):
    tokens, answer = connected.draw(generator(size), 61, size=size)
    assert tokens.shape == (61, size * size) and tokens.dtype == torch.long and tokens.device.type == "cpu"
    assert answer.shape == (61,) and answer.device.type == "cpu" and set(answer.tolist()) == {0, 1}
    for row, label in zip(tokens, answer.tolist(), strict=True):
        pixels = row.tolist()
        assert set(pixels) == {connected.EMPTY, connected.PATH, connected.END}
        assert pixels.count(connected.END) == 2
        patches = filled(pixels, size)
        ends = [divmod(i, size) for i, kind in enumerate(pixels) if kind == connected.END]
        assert label == any(set(ends) <= patch for patch in patches) == connected.joined(row)
        lengths = sorted(map(len, patches))
        assert len(lengths) == 4, "two long paths, two short ones"
        assert max(2, size // 4) <= lengths[0] and lengths[1] <= size // 2
        assert size <= lengths[2] and lengths[3] <= 3 * size // 2
        for patch in patches:  # a path: two tips with one neighbour, two neighbours for all others
            degree = {(r, c): len({(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)} & patch) for r, c in patch}
            assert sorted(degree.values()) == [1, 1] + [2] * (len(patch) - 2)
            assert all(degree[end] == 1 and len(patch) >= size for end in ends if end in patch)


def test_yes_and_no_are_equally_likely_and_nothing_countable_tells_them_apart():
    size = 12
    tokens, answer = connected.draw(generator(3), 6000, size=size)
    yes = answer.bool()
    assert abs(yes.double().mean() - 0.5) < 0.03  # four standard errors
    count = (tokens == connected.PATH).sum(1).double()
    assert abs(count[yes].mean() - count[~yes].mean()) < 4 * count.std() * (4 / 6000) ** 0.5
    ends = (tokens == connected.END).nonzero()[:, 1].reshape(-1, 2)
    apart = (ends // size).diff().abs() + (ends % size).diff().abs()
    features = torch.cat([count[:, None], apart, (apart - 8).abs()], 1).double().numpy()
    features = (features - features.mean(0)) / features.std(0)
    model = LogisticRegression().fit(features[:4000], answer[:4000])
    assert model.score(features[4000:], answer[4000:]) < 0.55
    same = LogisticRegression().fit(tokens[:4000], answer[:4000]).score(tokens[4000:], answer[4000:])
    assert same < 0.56, "no pixel by itself tells it either"


def test_both_answers_come_from_the_same_distances():
    going, apart, answers = generator(8), [], []
    for _ in range(4):
        tokens, answer = connected.draw(going, 5000)
        ends = (tokens == connected.END).nonzero()[:, 1].reshape(-1, 2)
        apart.append(((ends // 12).diff().abs() + (ends % 12).diff().abs())[:, 0])
        answers.append(answer)
    apart, answers = torch.cat(apart), torch.cat(answers)
    no, yes = (apart[answers == a].bincount(minlength=23) / (answers == a).sum() for a in (0, 1))
    assert (
        no - yes
    ).abs().sum() / 2 < 0.04  # by chance about 0.02; 0.07 and more where pairs are not matched
    assert apart.min() < 4 and apart.max() > 12, "near and far"


def test_every_pixel_may_be_an_end_and_no_picture_comes_twice():
    tokens = connected.draw(generator(4), 6000, size=8).tokens
    assert ((tokens == connected.END).sum(0) > 0).all()
    assert len(tokens.unique(dim=0)) == 6000


def test_a_batch_of_one_and_the_sizes_at_both_ends():
    assert connected.draw(generator(), 1).tokens.shape == (1, 144)
    for size in (connected.SIZES.start, connected.SIZES.stop - 1):
        row, label = (x[0] for x in connected.draw(generator(), 1, size=size))
        assert connected.picture(row).shape == (size, size) and connected.joined(row) == bool(label)
    assert connected.KINDS == 3


RING = [[1, 1, 1, 0], [2, 0, 1, 0], [0, 0, 1, 0], [2, 1, 1, 0]]


def test_joined_by_hand():
    ring = torch.tensor(RING)
    assert connected.joined(ring.flatten())
    cut = ring.clone()
    cut[2, 2] = 0
    assert not connected.joined(cut.flatten())
    corner = torch.tensor([[2, 1, 0], [0, 0, 1], [0, 0, 2]])
    assert not connected.joined(corner.flatten()), "where only corners meet, nothing is joined"
    assert connected.joined(torch.tensor([2, 2, 0, 0])), "neighbours are joined without a path"


@pytest.mark.parametrize("call, said", [
    (lambda: connected.draw(generator(), 0), "batch must be a whole number >= 1, got 0"),
    (lambda: connected.draw(generator(), 3, size=33), "got 33"),
    (lambda: connected.picture(torch.zeros(2, 4).long()), r"got \(2, 4\); of a batch take tokens\[0\]"),
    (lambda: connected.joined(torch.tensor([2, 2, -1, 0])), r"got -1 \.\.\. 2"),
])  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
