"""The figures of lesson 07 draw what they are given, in its place; frames and boxes lie on their pixels."""

import pytest
import torch

from lesson_lib.chapters.c07_attention_vs_cnn import figures
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr as detecting
from lesson_lib.charts.picture import CURVES
from lesson_lib.convolution import as_attention
from lesson_lib.experiments import results

C, H, W = 3, 5, 7


def frames(axes):
    """(left, top, width, height) of each rectangle."""
    return [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in axes.patches]


def panels(picture):
    """Axes that hold a drawing, without colour bars."""
    return [axes for axes in picture.figure.axes if axes.get_label() != "<colorbar>"]


def table(axes, image=0):
    return torch.tensor(axes.images[image].get_array().filled(torch.nan).tolist(), device="cpu")


def test_the_example_is_a_picture_of_5_by_10_in_tenths():
    picture = figures.example_picture()
    assert picture.shape == (3, 5, 10) and torch.equal(picture, figures.example_picture())
    assert picture.device.type == "cpu" and 0 <= picture.min() and picture.max() <= 1
    torch.testing.assert_close(10 * picture, (10 * picture).round())
    assert len({tuple(pixel) for pixel in picture.flatten(1).T.tolist()}) >= 5  # it is coloured
    assert picture[:, 0, 7].tolist() == pytest.approx([1.0, 0.8, 0.1])  # the sun


def test_a_set_names_every_pixel_row_by_row_and_marks_the_same_in_both():
    picture = torch.rand(C, H, W)
    image, listed = figures.picture_as_set(picture, marked=[(1, 3), (4, 0)]).figure.axes
    assert [text.get_text() for text in image.texts] == [str(i) for i in range(H * W)]
    assert [(text.get_position()) for text in image.texts][8] == (1, 1)  # pixel 8 is row 1, column 1
    assert frames(image) == [(2.5, 0.5, 1, 1), (-0.5, 3.5, 1, 1)]
    edged = [frame for frame in frames(listed) if frame[2] > 0.5]
    # a column for each row of the picture
    assert [(int(left), top) for left, top, *_ in edged] == [
        (1, 3),
        (4, 0),
    ]
    words = [text.get_text() for text in listed.texts]
    at = words.index("10")  # row 1, column 3
    assert words[at + 1] == "  ".join(f"{value:.1f}" for value in picture[:, 1, 3].tolist())
    assert listed.texts[at].get_position()[1] == 3.5
    swatches = [patch.get_facecolor()[:3] for patch in listed.patches if patch.get_width() < 0.5]
    assert swatches[10] == pytest.approx(picture[:, 1, 3].tolist()) and len(swatches) == H * W


@pytest.mark.parametrize(
    "offset, name",
    [
        ((-1, -1), "up left (-1, -1)"),
        ((0, 0), "the pixel itself (0, 0)"),
        ((0, 1), "right (0, 1)"),
        ((2, -1), "down 2 left (2, -1)"),
    ],
)
def test_an_offset_has_a_name(offset, name):
    assert figures.offset_name(*offset) == name


@pytest.mark.parametrize("kernel", [1, 3])
def test_each_tap_is_drawn_in_its_place(kernel):
    conv = torch.nn.Conv2d(1, 1, kernel, padding=kernel // 2)
    weights = as_attention(conv).heads(torch.zeros(1, 1, H, W), weights=True).weights[0]
    border, (row, column) = kernel // 2, (3, 1)
    drawn = panels(figures.taps(weights, (row, column), (H, W), border))
    assert len(drawn) == kernel**2
    for axes, (down, right) in zip(drawn, figures.kernel_offsets(kernel), strict=True):
        brightest = divmod(table(axes).argmax().item(), W + 2 * border)
        assert brightest == (row + down + border, column + right + border)
        assert axes.get_title() == figures.offset_name(down, right)
        query, outline = frames(axes)
        assert query == (column + border - 0.5, row + border - 0.5, 1, 1)
        assert outline == (border - 0.5, border - 0.5, W, H)
        assert axes.images[0].get_clim() == pytest.approx((0, weights.max().item()))


@pytest.mark.parametrize(
    "shape, pixel, said",
    [
        ((9, H * W, H * W), (0, 0), r"must have shape \(K \* K, 35, 63\), got \(9, 35, 35\)"),
        ((8, H * W, 63), (0, 0), r"got \(8, 35, 63\)"),
        ((9, H * W, 63), (5, 0), r"picture of 5 x 7, counted from 0, got \(5, 0\)"),
        ((9, H * W, 63), (0, -1), r"got \(0, -1\)"),
    ],
)
def test_taps_that_do_not_fit_get_a_sentence(shape, pixel, said):
    with pytest.raises(ValueError, match=said):
        figures.taps(torch.rand(shape), pixel, (H, W), 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_gaze_shows_the_picture_with_its_border_and_the_weights(channels):
    picture, weights = torch.rand(channels, H, W), torch.rand(H + 4, W + 4)
    left, right = panels(figures.gaze(picture, weights, (4, 6), "where it looks"))
    assert left.images[0].get_array().shape[:2] == (H + 4, W + 4)
    torch.testing.assert_close(table(right).float(), weights.cpu())
    assert frames(left) == frames(right) == [(7.5, 5.5, 1, 1), (1.5, 1.5, W, H)]


def test_errors_are_drawn_on_a_logarithmic_axis():
    (axes,) = figures.error_by_sharpness([1, 5, 10], [0.5, 1e-2, 1e-4], [0.5, 1e-2, 1e-5]).figure.axes
    assert axes.get_yscale() == "log" and axes.get_xscale() == "linear"
    assert {line.get_label(): list(line.get_ydata())[-1] for line in axes.lines} == {
        "float32": 1e-4,
        "float64": 1e-5,
    }


def test_fields_share_one_rule_and_zero_differs_from_small():
    small = torch.zeros(H, W)
    small[1, 2], small[3, 4] = 1e-9, 0.5
    drawn = panels(figures.fields({"a": small, "b": 8 * small}, (3, 4)))
    for axes in drawn:
        shares = table(axes)
        assert shares[3, 4] == 1 and shares[1, 2] == pytest.approx(2e-9) and shares.isnan().sum() == H * W - 2
        assert axes.images[0].get_clim() == (0, 1) and frames(axes) == [(3.5, 2.5, 1, 1)]
        white, dark = axes.images[0].cmap.get_bad(), axes.images[0].cmap(2e-9)
        assert white.tolist() == [1, 1, 1, 1] and sum(dark[:3]) < 1
    assert all(axes.spines["left"].get_visible() for axes in drawn)  # white pixels need an edge


def test_a_field_of_zeros_is_white_and_a_pixel_outside_gets_a_sentence():
    (axes,) = panels(figures.fields({"blind": torch.zeros(H, W)}, (0, 0)))
    assert table(axes).isnan().all()
    with pytest.raises(ValueError, match=r"picture of 5 x 7, counted from 0, got \(0, 7\)"):
        figures.fields({"a": torch.ones(H, W)}, (0, 7))


@pytest.mark.parametrize("task, chance", [("digits", 0.1), ("pairs", 0.5)])
def test_curves_have_a_panel_for_each_budget_and_a_line_for_chance(task, chance):
    ns = [100, 1000, 10000]
    lows = {"ViT": 0.2, "CNN": 0.3}
    curves = {model: (ns, [low, 0.4, 0.5], [low, 0.5, 0.6], [low, 0.6, 0.7]) for model, low in lows.items()}
    points = dict.fromkeys(("short", "long"), curves)
    picture = figures.curves(points, task)
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == [
        "test accuracy, short",
        "test accuracy, long",
    ]
    for axes in picture.figure.axes:
        vit, cnn, line = axes.lines
        assert (list(vit.get_ydata()), list(cnn.get_ydata())) == ([0.2, 0.5, 0.6], [0.3, 0.5, 0.6])
        assert line.get_ydata()[0] == chance and axes.get_xscale() == "log" and len(axes.collections) == 2
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["100", "1000", "10000"]
    assert task in picture.caption


def test_an_unknown_task_gets_a_sentence():
    with pytest.raises(ValueError, match="task must be one of digits, pairs, got 'cats'"):
        figures.curves({}, "cats")


def test_distances_have_a_dot_for_each_head():
    before, after = {1: [3.0, 4.0], 2: [5.0, 6.0]}, {1: [1.0, 2.0], 2: [7.0, 8.0]}
    left, right = figures.distances(before, after).figure.axes
    for axes, given in ((left, before), (right, after)):
        dots = [(round(line.get_xdata()[0]), line.get_ydata()[0]) for line in axes.lines]
        assert dots == [(i, value) for i, layer in enumerate(given) for value in given[layer]]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]
    assert left.get_ylim() == right.get_ylim() and left.get_ylim()[0] == 0
    assert [text.get_text() for text in right.figure.legends[0].get_texts()] == ["head 0", "head 1"]


@pytest.mark.parametrize("count, across", [(1, 1), (4, 4), (6, 6), (7, 4), (8, 4)])
def test_scenes_of_any_number_have_their_titles_and_one_scale(count, across):
    canvases = torch.rand(count, H, H)
    picture = figures.scenes(canvases, [f"title {i}" for i in range(count)])
    shown = [axes for axes in picture.figure.axes if axes.images]
    assert [axes.get_title() for axes in shown] == [f"title {i}" for i in range(count)]
    low, high = (end.item() for end in canvases.aminmax())
    assert {axes.images[0].get_clim() for axes in shown} == {(low, high)}
    assert shown[0].get_gridspec().ncols == across
    assert all(not axes.axison for axes in picture.figure.axes[count:])


def test_gamma_is_drawn_over_the_steps_with_a_line_at_zero():
    (axes,) = figures.gamma(
        {"generator": ([0, 5, 9], [0.0, 0.1, 0.2]), "discriminator": ([0, 5, 9], [0.0, -0.1, 0.3])}
    ).figure.axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.0, 0.1, 0.2], [0.0, -0.1, 0.3], [0.0, 0.0]]


@pytest.mark.parametrize("h, w, across", [(5, 5, 4), (4, 16, 2), (16, 4, 8)])
def test_generated_pictures_stand_row_by_row(h, w, across):
    pictures = torch.arange(16.0)[:, None, None].expand(16, h, w)
    (axes,) = panels(figures.generated({"real": pictures}))
    tiles = table(axes)
    assert tiles.shape == (16 // across * (h + 1) - 1, across * (w + 1) - 1) and axes.get_title() == "real"
    assert tiles[:: h + 1, :: w + 1].tolist() == torch.arange(16.0).reshape(-1, across).tolist()
    assert tiles[h].isnan().all() and tiles[:, w].isnan().all()


def test_agreement_over_the_steps_is_the_stored_runs():
    (axes,) = figures.agreement().figure.axes
    rows = [row for row in results("sagan")["rows"] if (row["kind"], row.get("noises")) == ("long", "own")]
    for line, middle in zip(axes.lines, ("attention", "wide convolution", "nothing"), strict=True):
        ended = sorted(row["reports"][-1]["kappa"] for row in rows if row["middle"] == middle)
        assert line.get_ydata()[-1] == ended[1] and line.get_xdata()[-1] == 2400


def test_edges_have_one_scale_for_both_signs_and_letters_in_every_panel():
    found = torch.tensor([[-3.0, 1.0], [0.0, 2.0]])
    picture = figures.edges(torch.rand(3, 2, 2), {"edges": found}, {"A": (1, 0)})
    whole, drawn = panels(picture)
    assert [text.get_text() for axes in (whole, drawn) for text in axes.texts] == ["A", "A"]
    assert drawn.texts[0].get_position() == (0, 1) and drawn.images[0].get_clim() == (-3, 3)


def test_what_was_missed_has_a_dot_for_each_seed():
    (axes,) = figures.searched().figure.axes
    assert [len(line.get_ydata()) for line in axes.lines] == [5, 5, 5, 5]
    names = [text.get_text() for text in axes.get_xticklabels()]
    by_name = dict(zip(names, (line.get_ydata() for line in axes.lines), strict=True))
    assert min(by_name["3 x 3 kernel"]) > 1 and max(by_name["7 x 7 kernel"]) < 1e-4
    assert sum(y < 0.01 for y in by_name["8 heads"]) == 4 and min(by_name["4 heads"]) > 0.1


def test_two_curves_cross_and_the_next_figure_says_why():
    def stored(model, budget, n):
        return sorted(
            row["accuracy"]
            for row in results("vit")["rows"]
            if row["kind"] == "point"
            and (row["task"], row["model"], row["budget"], row["n"]) == ("digit", model, budget, n)
        )[1]

    (axes,) = figures.crossing().figure.axes
    cnn, vit = (line.get_ydata() for line in axes.lines)
    assert cnn[0] > vit[0] and vit[-1] > cnn[-1]
    assert (cnn[-1], vit[-1]) == (stored("cnn", "tiny", 25_000), stored("vit", "long", 25_000))
    digits, pairs = figures.uncovered().figure.axes
    assert [line.get_label() for line in digits.lines] == [
        "CNN, 50 steps", "CNN, 200 steps", "CNN, 800 steps", "ViT, 200 steps", "ViT, 800 steps",
    ]  # fmt: skip
    assert len(pairs.lines) == 4 and digits.lines[2].get_ydata()[-1] == stored("cnn", "long", 25_000)


def test_wrong_answers_are_orange_and_right_ones_are_not():
    picture = figures.judged(torch.rand(2, 4, 4), ["same", "different"], {"CNN": ["same", "same"]})
    first, second = panels(picture)
    assert [axes.texts[0].get_text() for axes in (first, second)] == ["CNN: same", "CNN: same"]
    assert first.texts[0].get_color() != CURVES[1] == second.texts[0].get_color()


def test_the_class_token_reads_every_token_of_two_layers():
    (axes,) = figures.class_token_path(torch.rand(6, 6), patch=3).figure.axes
    assert len(axes.patches) == 3 * 5  # four patches and the class token, three times
    assert sum(line.get_color() == CURVES[1] for line in axes.lines) == 2 * 5


def test_recall_by_objects_is_the_stored_runs():
    (axes,) = figures.by_objects().figure.axes
    ended = [line.get_ydata() for line in axes.lines]
    assert [len(row) for row in ended] == [3, 3, 3]
    assert ended[2][0] > 0.95 and max(ended[2][1:]) < 0.1 and min(ended[0]) > 0.9


def test_queries_are_drawn_where_they_were_sure():
    rows = [
        {"system": "no matching", "queries": []},
        {"system": "DETR"},
        {"system": "DETR", "queries": [{"query": 0, "x": [1.0, 2.0], "y": [3.0, 4.0], "sure": [1, 0]},
                                       {"query": 1, "x": [5.0], "y": [6.0], "sure": [0]}]},
    ]  # fmt: skip
    first, second = panels(figures.queries(rows))
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in first.lines] == [([1.0], [3.0])]
    assert not second.lines and second.get_title() == "query 1"
    assert first.get_ylim() == (24, 0)  # pixels count downwards


def test_maps_frame_the_place_that_asks_in_the_coarse_map_and_in_the_picture():
    attention = {(1, 3): torch.rand(4, 5), (0, 0): torch.rand(4, 5)}
    picture, first, second = panels(figures.maps(torch.rand(8, 15), attention))
    assert frames(picture) == [(8.5, 1.5, 3, 2), (-0.5, -0.5, 3, 2)]
    assert frames(first) == [(2.5, 0.5, 1, 1)] and frames(second) == [(-0.5, -0.5, 1, 1)]
    assert first.get_title() == "asked at (1, 3)"
    torch.testing.assert_close(table(first).float(), attention[1, 3].cpu())
    with pytest.raises(ValueError, match=r"picture of 4 x 5, counted from 0, got \(4, 0\)"):
        figures.maps(torch.rand(8, 15), {(4, 0): torch.rand(4, 5)})


def test_both_ends_look_most_at_one_place_which_changes_with_the_picture():
    row = next(row for row in results("sagan")["rows"] if row["kind"] == "shown" and "maps" in row)
    rings, found = [], []
    for axes in figures.places().figure.axes:
        rings += [(line.get_ydata()[0], line.get_xdata()[0]) for line in axes.lines]
    for picture in row["maps"]:
        for looked in picture:
            largest = max(max(line) for line in looked)
            found += [(i, j) for i, line in enumerate(looked) for j, w in enumerate(line) if w == largest]
    assert rings == found == [(3, 8), (3, 8), (2, 10), (2, 10)]


def test_boxes_lie_on_edges_and_those_of_no_width_are_left_out():
    canvases = torch.rand(2, 24, 24)
    true = [torch.tensor([[2, 5, 7, 10], [0, 0, 0, 0]]), torch.tensor([[12, 0, 20, 8]])]
    found = [torch.tensor([[2.5, 5.0, 7.0, 9.5]]), torch.zeros(0, 4)]
    first, second = panels(figures.detections(canvases, true, found, [["disc"], []]))
    assert frames(first) == [(1.5, 4.5, 5, 5), (2.0, 4.5, 4.5, 4.5)] and frames(second) == [
        (11.5, -0.5, 8, 8)
    ]
    dashed, solid = first.patches
    assert dashed.get_linestyle() == "--" and solid.get_linestyle() in ("-", "solid")
    assert [text.get_text() for text in first.texts] == ["disc"] and not second.texts


@pytest.mark.parametrize(
    "box, place",
    [
        ([2.0, 6.0, 8.0, 12.0], (1.5, 5.5, "left", "bottom")),
        ([2.0, 1.0, 8.0, 7.0], (1.5, 6.5, "left", "top")),  # no room above
        ([16.0, 6.0, 24.0, 12.0], (23.5, 5.5, "right", "bottom")),  # none to the right
    ],
)
def test_a_label_stays_in_the_canvas(box, place):
    box = torch.tensor([box])
    (axes,) = panels(figures.detections(torch.rand(1, 24, 24), [box], [box], [["cross"]]))
    (text,) = axes.texts
    assert (*text.get_position(), text.get_ha(), text.get_va()) == place


def test_a_querys_map_covers_the_canvas_cell_by_cell():
    weights = torch.zeros(3, 4)
    weights[1, 2], weights[0, 0] = 0.5, 0.25
    plain, covered = panels(
        figures.query_maps(torch.rand(24, 16), torch.tensor([4, 8, 12, 16]), {"head 0": weights})
    )
    assert len(plain.images) == 1 and frames(plain) == frames(covered) == [(3.5, 7.5, 8, 8)]
    over = covered.images[1]
    assert list(over.get_extent()) == [-0.5, 15.5, 23.5, -0.5] and over.get_array().shape == (3, 4, 4)
    alpha = over.get_array()[..., 3]
    assert alpha[1, 2] == pytest.approx(0.85) and alpha[0, 0] == pytest.approx(0.425)
    assert (alpha > 0).sum() == 2


def test_centres_point_from_before_to_after_down_and_right():
    before, after = torch.tensor([[0.0, 0.5], [2.0, 0.0]]), torch.tensor([[-1.0, 1.0], [1.0, 0.0]])
    places = torch.tensor([[-1.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    (axes,) = figures.centres(before, after, places).figure.axes
    rings, first, last = axes.lines
    assert list(zip(rings.get_ydata(), rings.get_xdata(), strict=True)) == [(-1, 1), (1, 0), (0, -1)]
    assert list(zip(first.get_ydata(), first.get_xdata(), strict=True)) == [(0, 0.5), (2, 0)]
    assert list(zip(last.get_ydata(), last.get_xdata(), strict=True)) == [(-1, 1), (1, 0)]
    arrows = [(tuple(text.xyann), tuple(text.xy)) for text in axes.texts]
    assert arrows == [((0.5, 0.0), (1.0, -1.0)), ((0.0, 2.0), (0.0, 1.0))]  # (right, down)
    assert axes.yaxis_inverted() and first.get_color() == CURVES[0]


@pytest.mark.parametrize(
    "picture, got",
    [
        (None, "NoneType"),
        ([[1.0]], "list"),
        (torch.rand(2, H, W), r"\(2, 5, 7\)"),
        (torch.rand(1, C, H, W), r"\(1, 3, 5, 7\)"),
    ],
)
def test_what_is_no_picture_gets_a_sentence(picture, got, no_shape_hook):
    with pytest.raises(ValueError, match=rf"must be a tensor \(h, w\), .*got {got}; of a batch take"):
        figures.draw_picture(figures.sheet()[1][0][0], picture)


def test_a_coloured_picture_is_clipped_and_a_grey_one_starts_at_zero():
    axes = figures.sheet()[1][0][0]
    colored = figures.draw_picture(axes, torch.full((3, H, W), 1.7)).get_array()
    assert colored.shape == (H, W, 3) and colored.max() == 1
    assert figures.draw_picture(axes, torch.full((H, W), 0.5)).get_clim() == (0, 0.5)
    # of one value: any range
    assert figures.draw_picture(axes, torch.full((1, H, W), -0.5)).get_clim() == (
        -0.5,
        0.5,
    )
    assert figures.draw_picture(axes, torch.zeros(H, W)).get_clim() == (0, 1)


@pytest.mark.parametrize(
    "picture",
    [
        lambda: figures.picture_as_set(figures.example_picture()),
        lambda: figures.taps(torch.rand(9, 144, 196), (2, 2), (12, 12), 1),
        lambda: figures.gaze(figures.example_picture(), torch.rand(7, 12), (2, 2), "up"),
        lambda: figures.error_by_sharpness([1, 2], [0.1, 0.2], [0.1, 0.2]),
        lambda: figures.fields({name: torch.rand(H, W) for name in "abcd"}, (0, 0)),
        lambda: figures.curves({"short": {"ViT": ([1, 2], [0.1, 0.2], [0.1, 0.2], [0.1, 0.2])}}, "pairs"),
        lambda: figures.distances({1: [1.0]}, {1: [2.0]}),
        lambda: figures.scenes(torch.rand(6, H, H), "abcdef"),
        lambda: figures.gamma({"generator": ([0, 1], [0.0, 0.1])}),
        lambda: figures.generated({name: torch.rand(16, 8, 24) for name in "abcd"}),
        figures.agreement,
        figures.searched,
        figures.crossing,
        figures.uncovered,
        figures.by_objects,
        figures.places,
        lambda: figures.drawn(torch.rand(16, 8, 24), "attention", "wide convolution"),
        lambda: figures.edges(torch.rand(3, 5, 10), {"one": torch.randn(5, 10), "two": torch.randn(5, 10)}),
        lambda: figures.shares(*torch.rand(3, 3, 3)),
        lambda: figures.class_token_path(torch.rand(20, 20), patch=5),
        lambda: figures.shares_right({"CNN, new": 1.0, "ViT, new": 0.7}, guess=0.5),
        lambda: figures.judged(torch.rand(6, 20, 20), ["same"] * 6, {"ViT": ["different"] * 6}),
        lambda: figures.found_in(detecting.scenes("test")),
        lambda: figures.looked_from(detecting.scenes("test")),
        lambda: figures.queries(
            [{"system": "DETR", "queries": [{"query": 0, "x": [1.0], "y": [1.0], "sure": [1]}] * 5}]
        ),
        lambda: figures.maps(torch.rand(8, 8), {(i, i): torch.rand(4, 4) for i in range(4)}),
        lambda: figures.detections(
            torch.rand(4, 24, 24), [torch.zeros(0, 4)] * 4, [torch.zeros(0, 4)] * 4, [[]] * 4
        ),
        lambda: figures.query_maps(
            torch.rand(24, 24), torch.tensor([1, 1, 5, 5]), {name: torch.rand(6, 6) for name in "abcd"}
        ),
        lambda: figures.centres(torch.rand(9, 2), torch.rand(9, 2), torch.rand(9, 2)),
    ],
)
def test_a_figure_is_narrow_enough_and_says_what_it_shows(picture, no_shape_hook):
    made = picture()
    assert made.figure.get_size_inches()[0] <= 8.0
    assert (
        len(made.alt) > 40
        and made.alt.endswith(".")
        and not any(c.isdigit() for c in made.alt.replace("float32", "").replace("float64", ""))
    )
    assert made.caption.endswith(".") or not made.caption
