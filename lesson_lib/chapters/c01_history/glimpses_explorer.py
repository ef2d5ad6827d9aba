"""A model that looks at a picture piece by piece: its path, what it saw, and what it believes after each
glimpse."""

import base64
import html
import io

import ipywidgets
import torch
from jaxtyping import Float, Int
from matplotlib import colormaps
from PIL import Image
from torch import Tensor

from lesson_lib.chapters.c01_history.glimpse import first_pixel, retina
from lesson_lib.chapters.c01_history.glimpses_figures import glance
from lesson_lib.charts.picture import CURVES, HEAT, Picture
from lesson_lib.widgets.explorer import Explorer

UNIT = 10  # screen pixels for a pixel of the canvas
MARK = CURVES[1]

STYLE = """
.ll-looks {display:flex; flex-wrap:wrap; gap:8px 22px; align-items:flex-start; margin:8px 0}
.ll-box .ll-classes {margin:0}
.ll-box .ll-classes td, .ll-box .ll-classes th {padding:0 6px; text-align:left; border:0; height:19px; font-weight:400}
.ll-box .ll-classes .ll-bar {display:inline-block; height:12px; background:#999; vertical-align:middle}
.ll-box .ll-classes .ll-true th {font-weight:700; color:#00664A}
.ll-box .ll-classes .ll-true .ll-bar {background:#009E73}
"""  # noqa: E501


class GlimpseExplorer(Explorer):
    """Pick a picture and step through the glimpses: path, patches really seen, probabilities of the classes
    after each.

    `canvases` are (pictures, height, width), brightness 0 to 1; `places` (pictures, glimpses, 2) as a model
    chose them, with `probabilities` (pictures, glimpses, classes) after each; `labels` the true classes.
    `patch` and `n_scales` are the model's.
    Raises ValueError for shapes that do not fit together, and for numbers that are no probabilities.
    """

    def __init__(
        self,
        canvases: Float[Tensor, "pictures height width"],
        places: Float[Tensor, "pictures glimpses 2"],
        probabilities: Float[Tensor, "pictures glimpses classes"],
        labels: Int[Tensor, "pictures"],
        *,
        patch: int = 8,
        n_scales: int = 2,
    ) -> None:
        _check(canvases, places, probabilities, labels)
        self.canvases, self.places = canvases.detach().cpu(), places.detach().cpu()
        self.probabilities, self.labels = probabilities.detach().cpu().tolist(), labels.tolist()
        self.patch, self.n_scales = patch, n_scales
        count, glimpses = places.shape[:2]
        narrow = ipywidgets.Layout(width="90px")
        self.picture = ipywidgets.IntSlider(0, min=0, max=count - 1, description="picture")
        self.play = ipywidgets.Play(value=1, min=1, max=glimpses, interval=1200, description="play")
        self.back = ipywidgets.Button(description="back", icon="step-backward", layout=narrow)
        self.forward = ipywidgets.Button(description="forward", icon="step-forward", layout=narrow)
        self.step = ipywidgets.IntSlider(1, min=1, max=glimpses, description="look")
        self.back.on_click(lambda _: self._go(self.step.value - 1))
        self.forward.on_click(lambda _: self._go(self.step.value + 1))
        super().__init__([self.picture, self.play, self.back, self.forward, self.step])
        ipywidgets.link((self.play, "value"), (self.step, "value"))
        self.watch(self.picture, self.step)

    def draw(self) -> str:
        which, step = self.picture.value, self.step.value
        place = self.places[which, step - 1]
        patches = retina(self.canvases[which][None], place[None], self.patch, self.n_scales)[0]
        shown = "".join(
            f"<div>{_wide(self.patch * 2**k, self.patch)}{_image(pixels, 12, self._seen(k, step))}</div>"
            for k, pixels in enumerate(patches)
        )
        x, y = place.tolist()
        return (
            f"<style>{STYLE}</style><p><b>Look {step} of {self.places.shape[1]}</b>, at x = {x:.2f}, y ="
            f" {y:.2f}. {html.escape(self.words())}</p>"
            "<div"
            f' class="ll-looks">{self._canvas(which, step)}<div>{shown}</div>'
            f"{self._classes(which, step)}</div>"
            "<p>Solid square: the sharp patch. Dashed: the wide one, seen coarsely. Outside both the model"
            " saw nothing in this look.</p>"
        )

    def still(self) -> Picture:
        which, step = self.picture.value, self.step.value
        rows = torch.tensor(self.probabilities[which], device="cpu")
        label, options = self.labels[which], {"patch": self.patch, "n_scales": self.n_scales}
        return glance(self.canvases[which], self.places[which], rows, label, upto=step, **options)

    def words(self) -> str:
        """What the model believes after this glimpse, as a sentence."""
        row, label = (
            self.probabilities[self.picture.value][self.step.value - 1],
            self.labels[self.picture.value],
        )
        guess = row.index(max(row))
        verdict = "That is right." if guess == label else f"It is a {label}, which gets {row[label]:.2f}."
        return f"The model says {guess}, with probability {row[guess]:.2f}. {verdict}"

    def _go(self, step: int) -> None:
        self.step.value = min(self.step.max, max(1, step))

    def _seen(self, scale: int, step: int) -> str:
        name = "sharp" if scale == 0 else "wide"
        return f"the {name} patch of look {step}"

    def _canvas(self, which: int, step: int) -> str:
        """The canvas with the squares of this glimpse and the path so far."""
        canvas = self.canvases[which]
        height, width = (UNIT * side for side in canvas.shape)
        path = [((x + 1) / 2 * width, (y + 1) / 2 * height) for x, y in self.places[which, :step].tolist()]
        frames = []
        for k in range(self.n_scales):
            size = self.patch * 2**k
            column, row = first_pixel(self.places[which, step - 1], canvas.shape, size).tolist()
            style = 'stroke-width="3"' if k == 0 else 'stroke-width="2" stroke-dasharray="6 4"'
            frames.append(
                f'<rect x="{UNIT * column}" y="{UNIT * row}" width="{UNIT * size}" height="{UNIT * size}"'
                f' fill="none" stroke="{MARK}" {style}/>'
            )
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
        stops = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="#fff" stroke="{MARK}"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="11">{t}</text>'
            for t, (x, y) in enumerate(path, start=1)
        )
        label = html.escape(
            f"canvas with a {self.labels[which]}; looks so far at "
            + ", ".join(f"({x:.2f}, {y:.2f})" for x, y in self.places[which, :step].tolist())
        )
        return (
            f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" fill="#111"><image'
            f' href="{_png(canvas)}" width="{width}" height="{height}" preserveAspectRatio="none"'
            f' style="image-rendering:pixelated"/>{"".join(frames)}<polyline points="{points}" fill="none"'
            f' stroke="#fff" stroke-width="4"/><polyline points="{points}" fill="none" stroke="{MARK}"'
            f' stroke-width="2"/>{stops}</svg>'
        )

    def _classes(self, which: int, step: int) -> str:
        """A bar for each class."""
        rows = []
        for digit, p in enumerate(self.probabilities[which][step - 1]):
            mark, name = (
                (' class="ll-true"', f"{digit} ✓") if digit == self.labels[which] else ("", str(digit))
            )
            bar = f'<span class="ll-bar" style="width:{round(120 * p)}px"></span> {p:.2f}'
            rows.append(f'<tr{mark}><th scope="row">{name}</th><td>{bar}</td></tr>')
        return (
            f'<table class="ll-classes"><caption>after look {step} (✓: the'
            f" truth)</caption>{''.join(rows)}</table>"
        )


def _wide(width: int, patch: int) -> str:
    return f"{width} by {width}" + ("" if width == patch else f", averaged to {patch} by {patch}")


def _image(pixels: Tensor, unit: int, label: str) -> str:
    height, width = (unit * side for side in pixels.shape)
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg role="img" aria-label="{html.escape(label)}" {size} style="display:block"><image'
        f' href="{_png(pixels)}" {size} preserveAspectRatio="none" style="image-rendering:pixelated"/></svg>'
    )


def _png(pixels: Tensor) -> str:
    """Brightness as a picture with a pixel for each number, as a data address."""
    file = io.BytesIO()
    Image.fromarray(colormaps[HEAT](pixels.cpu().numpy(), bytes=True)[..., :3].copy()).save(
        file, format="PNG"
    )
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _check(canvases: Tensor, places: Tensor, probabilities: Tensor, labels: Tensor) -> None:
    """Raises where the four do not belong together."""
    given = {"canvases": canvases, "places": places, "probabilities": probabilities, "labels": labels}
    for (name, x), axes in zip(given.items(), (3, 3, 3, 1), strict=True):
        if not isinstance(x, Tensor) or x.ndim != axes or x.numel() == 0:
            got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(f"{name} must be a tensor with {axes} axes, the first the pictures', got {got}")
    if len({len(x) for x in given.values()}) > 1 or places.shape[1:] != (probabilities.shape[1], 2):
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in given.items())
        raise ValueError(
            f"pictures and glimpses must be as many everywhere, and places be (x, y); got {shapes}"
        )
    if (probabilities < 0).any() or not ((probabilities.sum(-1) - 1).abs() < 0.02).all():
        raise ValueError(
            "probabilities must be >= 0 and sum to 1 over the classes; for logits, pass"
            " looked.probabilities()"
        )
    if labels.min() < 0 or labels.max() >= probabilities.shape[2]:
        raise ValueError(
            f"labels must be 0 ... {probabilities.shape[2] - 1}, got {labels.min().item()} ..."
            f" {labels.max().item()}"
        )
