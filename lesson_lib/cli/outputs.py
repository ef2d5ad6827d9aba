"""A notebook's outputs as they are stored, and when a stored one may stay."""

import base64
import io
from collections import defaultdict
from collections.abc import Sequence

import nbformat
from nbformat import NotebookNode

# Not stored: a reader without a kernel would see "model not found" in place of the still picture.
WIDGET = "application/vnd.jupyter.widget-view+json"
TILE = 12  # pixels: about a digit of a picture's labels


def normal_outputs(outputs: Sequence[NotebookNode], count: int) -> list[NotebookNode]:
    """The outputs as they are stored: streams of one name joined, no widget views, no paths in tracebacks."""
    normal: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}
    for output in outputs:
        output = nbformat.from_dict(dict(output))
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].text += output.text
                continue
            streams[output.name] = output
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            output.data = {mime: value for mime, value in sorted(output.data.items()) if mime != WIDGET}
            if output.output_type == "execute_result":
                output.execution_count = count
        normal.append(output)
    return normal


def seen_by_nbval(outputs: Sequence[NotebookNode]) -> dict[str, list]:
    """What nbval compares of a cell's outputs: every text by its kind; no pictures, metadata or counts."""
    texts = defaultdict(list)
    for output in outputs:
        if output.output_type == "stream":
            texts[output.name].append(output.text)
        elif output.output_type == "error":
            texts["ename"].append(output.ename)
            texts["evalue"].append(output.evalue)
        else:
            for mime, value in output.data.items():
                if mime not in ("image/png", "image/jpeg", WIDGET):
                    texts[mime].append(value)
    return dict(texts)


def may_keep(stored: Sequence[NotebookNode], new: Sequence[NotebookNode], *, ignored: bool = False) -> bool:
    """True where stored outputs may stay: equal to nbval, of the same kinds, with the same alt texts."""

    def frame(outputs: Sequence[NotebookNode]) -> list:
        return [(o.output_type, sorted(o.get("data", ())), dict(o.get("metadata", {}))) for o in outputs]

    return frame(stored) == frame(new) and (ignored or seen_by_nbval(stored) == seen_by_nbval(new))


def looks_alike(stored: str, new: str) -> bool:
    """True where two PNGs (base64) have one size and look the same, but for the rounding of a letter's edge.

    A changed digit is a small share of a large picture, so the pixels are also counted tile by tile.
    """
    import numpy as np
    from PIL import Image

    one, two = (Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in (stored, new))
    if one.size != two.size:
        return False
    distance = np.abs(np.asarray(one, dtype=np.int16) - np.asarray(two, dtype=np.int16)).max(axis=-1)
    changed = np.pad(distance > 24, [(0, -side % TILE) for side in distance.shape])
    tiles = changed.reshape(changed.shape[0] // TILE, TILE, -1, TILE).mean((1, 3))
    return bool(changed.mean() < 0.002 and tiles.max() < 0.15)


def pngs(outputs: Sequence[NotebookNode]) -> list[str]:
    """The PNGs among outputs, in base64."""
    return [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
