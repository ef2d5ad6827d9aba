"""The widgets of lesson 09: costs as torch counts them; what is heard is what the model says."""

import html
import io
import re
import wave

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import recording_explorer as recordings
from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention import window_explorer as windows
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.recording_explorer import RecordingExplorer
from lesson_lib.chapters.c09_truncated_attention.window_explorer import WindowExplorer
from lesson_lib.device import device
from lesson_lib.measure import operations
from lesson_lib.truncated import attend_window
from tests.explorers import stands_alone

RADII = (0, 2, 5, 15, None)


def rows():
    return [
        {"kind": "point", "radius": radius, "seed": seed, "accuracy": (5 + k + 0.1 * seed) / 10}
        for k, radius in enumerate(RADII) for seed in (0, 1, 2)
    ] + [{"kind": "rate", "radius": 2, "accuracy": 99.0}, {"kind": "guess", "accuracy": 77.0}]  # fmt: skip


def window(saturates=5):
    return WindowExplorer(rows(), saturates=saturates)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    with torch.device("cpu"):
        model = PhonemeRecogniser(len(speech.LABELS), radius=3, d_model=16, n_heads=2)
    return model.to(device())


def wav(seconds, rate=speech.RATE, silent=False):
    """The bytes of a WAV file of noise."""
    count = int(seconds * rate)
    samples = torch.zeros(count) if silent else 0.1 * torch.randn(count)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(bytes((samples.clamp(-1, 1) * 32767).short().cpu().numpy().data))
    return file.getvalue()


def put_in(explorer, content, name="mine.wav"):
    """What the upload button does with a file of the learner's."""
    file = {"name": name, "type": "audio/wav", "size": len(content), "content": memoryview(content)}
    explorer.upload.set_state({"value": [file | {"last_modified": 0}]})  # as the browser sends it


@pytest.mark.parametrize("which", ["window", "recording"])
def test_a_still_picture_stands_for_it_and_nothing_is_loaded(which, model):
    assert stands_alone(window if which == "window" else lambda: RecordingExplorer(model, speech.LABELS))


@pytest.mark.parametrize("radius", [0, 15, None])
def test_the_cost_is_what_torch_counts_for_a_head(radius):
    n, d = 211, 7
    q = torch.randn(1, n, d, device="cpu")
    call = (lambda: attend(q, q, q)) if radius is None else (lambda: attend_window(q, q, q, radius))
    found = windows.cost(radius, n)
    assert 2 * d * found.computed == operations(call)
    assert found.operations == 2 * 8 * 64 * found.computed
    assert found.mib == pytest.approx(8 * found.computed * 4 / 2**20)
    assert n <= found.counted <= found.computed


def test_the_chosen_radius_is_told_with_its_time_its_saving_and_its_accuracy():
    w = window()
    assert w.radius == 5
    share = 100 * windows.cost(5).operations / windows.cost(None).operations
    told = f"Radius 5: each frame looks at 11 frames, 110 ms. It takes {share:.0f} % of full attention's"
    assert w.words() == told + " multiplications at 10 s. Accuracy: 5 (0.710)."
    w.slider.value = "9"
    assert w.words().endswith("Not trained with this radius; accuracy beside it: 5 (0.710) and 15 (0.810).")
    w.slider.value = "0"
    assert w.words().startswith("Radius 0: each frame looks at 1 frame, 10 ms.")
    w.slider.value = "full"
    assert w.radius is None
    assert w.words() == "Full attention: each frame looks at all frames. Accuracy: full (0.910)."


@pytest.mark.parametrize(
    "value, nearest",
    [("1", [0, 2]), ("15", [15]), ("60", [15, None])],
)
def test_the_nearest_measured_radii_are_marked(value, nearest):
    w = window()
    w.slider.value = value
    assert w.nearest() == nearest
    dots = re.findall(
        r'<circle [^>]*r="(\d)" fill="[^"]+"><title>radius (\w+): ([\d.]+)</title>', w.drawing.value
    )
    assert [name for size, name, _ in dots if size == "6"] == [
        "full" if r is None else str(r) for r in nearest
    ]
    assert [float(mean) for *_, mean in dots] == pytest.approx([0.51, 0.61, 0.71, 0.81, 0.91])


def test_what_is_heard_is_what_the_model_says(model):
    w = RecordingExplorer(model, speech.LABELS)
    frames = speech.log_mel(speech.read_wav(speech.example()))
    with torch.no_grad():
        logits, weights = model.look(frames[None].to(device()))
    shares = (logits[0].exp() / logits[0].exp().sum(-1, keepdim=True)).cpu()
    assert_close(w.heard.chances, shares, atol=1e-5, rtol=0)
    assert torch.equal(w.guesses(), logits[0].argmax(-1).cpu())
    for mine, table in zip(w.heard.weights, weights, strict=True):
        assert_close(mine, table[0].mean(0).cpu())
    assert w.frame.max == len(frames) - 1 and w.frame.value == len(frames) // 2
    assert w.audio.value == speech.example().read_bytes()
    at, best = w.frame.value, shares[w.frame.value].argmax().item()
    assert w.words().startswith(
        f"Frame {at}, at {at / 100:.2f} s: {speech.LABELS[best]} ({shares[at, best]:.2f})"
    )


def test_half_of_the_weight_is_counted_from_the_frame_outwards():
    row = torch.tensor([0.1, 0.0, 0.2, 0.3, 0.1, 0.3])
    assert [recordings._half(row, at) for at in range(6)] == [3, 2, 1, 1, 1, 2]
    assert recordings._half(torch.ones(1), 0) == 0


def test_the_reach_of_a_window_is_marked_and_full_attention_has_none(model):
    w = RecordingExplorer(model, speech.LABELS)
    n = len(w.heard.frames)
    w.frame.value = 100
    edges = [float(x) for x in re.findall(r'<path d="M([\d.]+) \d+V\d+" [^>]*dasharray', w.drawing.value)]
    assert edges == pytest.approx([640 * 94 / n, 640 * 107 / n], abs=0.06)  # 3 frames in each of two layers
    with torch.device("cpu"):
        full = PhonemeRecogniser(len(speech.LABELS), radius=None, d_model=16, n_heads=2).to(device())
    drawing = RecordingExplorer(full, speech.LABELS).drawing.value
    assert "dasharray" not in drawing and "radius times layers" not in drawing


def test_a_recording_of_ones_own_is_listened_to(model):
    w = RecordingExplorer(model, speech.LABELS)
    before, content = w.drawing.value, wav(1.3)
    put_in(w, content, "<me>.wav")
    assert w.drawing.value != before and "&lt;me&gt;.wav" in w.drawing.value and "<me>" not in w.drawing.value
    assert_close(w.heard.frames, speech.log_mel(speech.read_wav(content)))
    assert w.frame.max == 130 and w.audio.value == content and "role='alert'" not in w.drawing.value
    w.back.click()
    assert w.drawing.value == before and w.audio.value == speech.example().read_bytes()
    put_in(w, content, "<me>.wav")  # the same once more
    assert w.frame.max == 130 and w.audio.value == content


def test_a_recording_comes_from_ipywidgets_7_too(model):
    w, content = RecordingExplorer(model, speech.LABELS), wav(1.3)
    w._uploaded({"new": {"me.wav": {"metadata": {"name": "me.wav"}, "content": content}}})
    assert w.frame.max == 130 and w.heard.name == "me.wav"


@pytest.mark.parametrize("content, words", [
    (b"", "is no WAV file that can be read here"), (wav(0), "holds 0 samples, less than one frame"),
    (wav(0.5, rate=44_100), "44100 samples per second, and 16000 are needed"),
    (wav(13), "the recording is 13.0 s long, at most 12 s can be shown; cut out a sentence"),
])  # fmt: skip
def test_what_cannot_be_listened_to_gets_a_sentence_and_the_rest_stays(model, content, words):
    w = RecordingExplorer(model, speech.LABELS)
    before = w.heard
    put_in(w, content, "song<3.wav")
    (alert,) = re.findall("<p role='alert'>(.*?)</p>", w.drawing.value)
    assert html.unescape(alert).startswith("song<3.wav: ") and words in html.unescape(alert)
    assert w.heard is before and w.audio.value == speech.example().read_bytes()
    w.frame.value = 3
    assert "Frame 3," in w.drawing.value
    w.back.click()
    assert "role='alert'" not in w.drawing.value


def test_guesses_are_written_where_they_are_heard_and_silence_is_not(model):
    w = RecordingExplorer(model, speech.LABELS)
    labels = torch.zeros(len(w.heard.frames), dtype=torch.long, device="cpu")
    labels[50:60] = 6
    stretches = recordings.segments(labels, speech.LABELS)
    ((x, line, name, times),) = re.findall(
        r'x="([\d.]+)" y="(\d+)"[^>]*>([^<]+)<title>([^<]+)</title>', w._written(stretches)
    )
    assert float(x) == pytest.approx(640 * 55 / len(labels), abs=0.06) and line == "12"
    assert (name, times) == (speech.LABELS[6], f"{speech.LABELS[6]}, 0.50 to 0.60 s")
