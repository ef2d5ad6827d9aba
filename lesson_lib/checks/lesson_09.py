"""Exercises of lesson 09, what if the input is long? Tables, windows, layers, latency, blocks."""

from typing import Any

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Choice, Number, Open
from lesson_lib.checks.inputs import drawn
from lesson_lib.checks.lesson_09_code import by_block, dilated, near, until
from lesson_lib.device import on
from lesson_lib.masks import window
from lesson_lib.measure import operations, peak_mib
from lesson_lib.truncated import attend_window

hour = Number(
    name="table_for_an_hour",
    title="A table for an hour of speech",
    stars=1,
    minutes=5,
    why=(
        "whoever knows this number does not wonder why a recogniser that runs on ten seconds dies on a"
        " lecture"
    ),
    asked=(
        "an hour of speech, a frame every 10 ms; one layer of full attention with 6 heads keeps its weights"
        " as float32: how many GiB (2^30 bytes) are they?"
    ),
    value=6 * 4 * 360_000**2 / 2**30,
    hints=(
        "How many frames has a second, and how many an hour?",
        (
            "How many weights has the table of one head, a row for each query and a column for each key? And"
            " how many tables are there?"
        ),
        "How many bytes is a float32? And by what must bytes be divided to be GiB?",
    ),
    solution=(
        "100 frames a second are 360,000 in an hour; a table has 360,000^2 = 1.296e11 weights, six of them"
        " 7.776e11, each of 4 bytes: 3.11e12 bytes. Divided by 2^30 that is 2,897 GiB, for one layer."
    ),
    remember=(
        "a table has n^2 weights for each head: ten times the speech, a hundred times the memory; an hour is"
        " 2,897 GiB here"
    ),
    slips={
        "that is the table of one head; each of the 6 has its own, however narrow it is": (
            "4 * 360000**2 / 2**30"
        ),
        "that is the number of weights in units of 2^30; each is 4 bytes": "6 * 360000**2 / 2**30",
        "a byte has 8 bits; a float32 has 32 bits, which are 4 bytes, not 32": "6 * 32 * 360000**2 / 2**30",
        "a float32 is 32 bits or 4 bytes, not 32 bytes; and there are 6 heads": "32 * 360000**2 / 2**30",
        "that is in GB, units of 10^9 bytes; a GiB is 2^30 = 1.074e9 bytes": "6 * 4 * 360000**2 / 10**9",
        "that is in GB, units of 10^9 bytes, and of one head": "4 * 360000**2 / 10**9",
        "that is in MiB; a GiB has 1,024 of them": "6 * 4 * 360000**2 / 2**20",
        "that is in TiB; asked is GiB": "6 * 4 * 360000**2 / 2**40",
        "that is in bytes; a GiB is 2^30 of them": "6 * 4 * 360000**2",
        "half of it: either two bytes for each weight, or half of the table; float32 has 4, and without a causal mask all pairs count": (
            "6 * 2 * 360000**2 / 2**30"
        ),
        "twice as much: a float32 has 4 bytes, not 8, and one table of weights is asked for": (
            "6 * 8 * 360000**2 / 2**30"
        ),
        "an hour has 3,600 seconds, not 60": "6 * 4 * 6000**2 / 2**30",
        "a frame every 10 ms makes 100 a second, not 10": "6 * 4 * 36000**2 / 2**30",
        "a frame every 10 ms makes 100 a second, not 1,000": "6 * 4 * 3600000**2 / 2**30",
        "one weight for each frame; but there is one for each PAIR of frames, n^2": "6 * 4 * 360000 / 2**30",
    },
    right=("6 * 4 * 360000**2 / 2**30", 2897, "6 * 4 * (3600 * 100)^2 / 1024^3"),
)

RADIUS = 15
FRAMES = (500, 1000, 1500)


def full_masked_window() -> dict[str, tuple[list[int], list[float]]]:
    """For full attention, a mask over its table, and a window: multiplications, and MiB at the peak (on the
    CPU), for each of FRAMES."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for n in FRAMES:
        x = drawn(9, 1, 1, n, 16)
        mask = window(n, RADIUS, device=x.device)
        calls = {
            "full attention": lambda x=x: attend(x, x, x),
            "mask over the table": lambda x=x, mask=mask: attend(x, x, x, mask=mask),
            "window, cut into blocks": lambda x=x: attend_window(x, x, x, RADIUS),
        }
        for name, call in calls.items():
            multiplications, mib = found.setdefault(name, ([], []))
            multiplications.append(operations(call))
            with on("cpu"):
                mib.append(peak_mib(call))
    return found


def _savings_picture() -> Any:
    from lesson_lib import plots

    found = full_masked_window()
    return plots.lines(
        {
            "million multiplications": {
                name: (FRAMES, [count / 1e6 for count in counts]) for name, (counts, _) in found.items()
            },
            "MiB at the peak": {name: (FRAMES, mib) for name, (_, mib) in found.items()},
        },
        alt=(
            "Two panels over 500 to 1,500 frames. Multiplications: full attention and the mask over the table"
            " are one curve, the window stays near 0. Memory: the mask over the table is highest, then full"
            " attention, the window stays near 0."
        ),
        caption=(
            f"One head of width 16, radius {RADIUS}. A mask hides scores after they are computed. Only where"
            " far keys are never asked is something saved."
        ),
        x_axis="frames",
        y_limits=(0.0, None),
    )


saves = Choice(
    name="what_a_mask_saves",
    title="What does a mask save?",
    stars=1,
    minutes=5,
    why=(
        '"our attention is local, so it is linear": code that says so may still compute every score, and hide'
        " most of them"
    ),
    asked=(
        "attend(q, k, v, mask=window(n, 15)) in place of attend(q, k, v), n = 1,500: a frame sees 31 keys"
        " instead of 1,500. What of the multiplications and of the memory?"
    ),
    options={
        "a": "both fall to about 31 / 1,500, a fiftieth",
        "b": "the multiplications fall to a fiftieth; the memory stays, since the table is there",
        "c": (
            "the memory falls to a fiftieth; the multiplications stay, since a weight must be known before it"
            " is hidden"
        ),
        "d": "the multiplications stay; the memory even grows, since the mask is one more table",
        "e": "the multiplications of the scores stay, those of the mix fall to a fiftieth; the memory stays",
        "f": "both grow to twice as much: once for all scores, once for those in the window",
    },
    hints=(
        "In which order does attend work: does it first compute scores or first look at the mask?",
        "A hidden weight is 0. Does a matrix product leave out a multiplication by 0?",
        (
            "A table of scores (n, n) is filled with -inf where the mask says so, and the mask itself is a"
            " table, too. How many tables are there with a mask, and how many without?"
        ),
    ),
    solution=(
        "d: q @ k.mT computes all n^2 scores, then most become -inf. weights @ v multiplies all n^2 weights,"
        " zeros too. And the mask is a table of its own. To save, far keys must never be asked: cut the"
        " frames into blocks."
    ),
    remember=(
        "a mask says what does not count, it saves nothing; what saves is to ask only the keys in reach,"
        " block by block"
    ),
    slips={
        "a is what a window cut into blocks comes near; a mask over the table hides scores after they were computed": (
            "a"
        ),
        "b forgets when the mask comes in: q @ k.mT is one product over all pairs, and the mask comes behind it": (
            "b"
        ),
        "c: the table stays as large as it was; a place with -inf or 0 takes as much memory as any other": (
            "c"
        ),
        "e: a matrix product multiplies zeros like any other number, so the mix costs what it cost before": (
            "e"
        ),
        "f: the scores are computed once, and hiding some needs no product; so the multiplications do not grow": (
            "f"
        ),
    },
    right=("d", " D) "),
    picture=_savings_picture,
)

latency = Number(
    name="streaming_latency",
    title="How late is a live recogniser?",
    stars=2,
    minutes=6,
    why=(
        "subtitles that come a second late are of little use; the look ahead decides on that, before any"
        " processor does"
    ),
    asked=(
        "frames every 10 ms; 2 layers look 4 frames ahead; then every second token is kept, one per 20 ms,"
        " and 6 layers look 3 tokens ahead (all look 32 back): how many ms behind its own frame lies the last"
        " frame that an output needs?"
    ),
    value=440,
    hints=(
        (
            "One layer that looks 4 frames ahead must wait 4 frames. How long is that in ms, and what of two"
            " such layers, one on top of the other?"
        ),
        (
            "In the upper layers a token stands for 20 ms. How many ms ahead do 3 tokens lie, and how many"
            " all 6 layers?"
        ),
        (
            "Both parts stand one on top of the other. Are their waits added up, or does the longer one hide"
            " the shorter? And does looking back make anyone wait?"
        ),
    ),
    solution=(
        "below: 2 layers * 4 frames * 10 ms = 80 ms. Above: 6 layers * 3 tokens * 20 ms = 360 ms. Reach adds"
        " up over layers: 440 ms. Looking back costs no wait, those frames were already there; computing"
        " takes its time on top."
    ),
    remember=(
        "latency = sum over layers of look-ahead x time per token; what lies behind makes no one wait, and a"
        " deep model needs a small look-ahead"
    ),
    slips={
        "above, a token stands for 20 ms, since every second one was left out": "2*4*10 + 6*3*10",
        "below, a frame stands for 10 ms; 20 ms are between tokens after every second one was left out": (
            "2*4*20 + 6*3*20"
        ),
        "you counted one layer of each kind; each layer on top waits for what the layer below waited for": (
            "4*10 + 3*20"
        ),
        "that is the part above; the two layers below look ahead, too": "6*3*20",
        "that is the part below; the six layers above look ahead, too": "2*4*10",
        "the waits of layers are added up; the longest single one is not enough": 60,
        "these are frames and tokens; asked is ms": 26,
        "that is in frames of 10 ms; asked is ms": 44,
        "that is in seconds; asked is ms": 0.44,
        "frames that were there before make no one wait; only what lies ahead counts": "2*32*10 + 6*32*20",
        "frames that were there before make no one wait; only what lies ahead counts, not the whole window": (
            "2*36*10 + 6*35*20"
        ),
        "you gave all 8 layers the look-ahead of the lower ones": "2*4*10 + 6*4*20",
        "you gave all 8 layers the look-ahead of the upper ones": "2*3*10 + 6*3*20",
        "reaches of layers add up, they do not multiply": "4**2 * 10 + 3**6 * 20",
        "in a layer the frame itself is already there: it waits for 4 or 3 further ones, not for 5 or 4": (
            "2*5*10 + 6*4*20"
        ),
    },
    right=("2*4*10 + 6*3*20", 440, "80 + 360"),
)

beyond = Open(
    name="beyond_every_window",
    title="What no training brings near",
    stars=2,
    minutes=7,
    why=(
        "a model that cannot hear something looks exactly like one that has not learned it yet; the"
        " difference is worth days of training"
    ),
    asked=(
        "in two or three sentences: 3 layers of window attention, radius 15; a label depends on a sound 100"
        " frames earlier. Why does the model stay at chance on it, however long it is trained, and what would"
        " you change?"
    ),
    hints=(
        "After one layer a frame knows of 15 frames on each side. Of how many after three?",
        (
            "If the sound is changed, by how much does the output 100 frames later change? So what is the"
            " gradient of the loss with respect to that sound?"
        ),
        (
            "How many layers would be enough, or which radius? What else carries something over 100 frames,"
            " without a table of all pairs?"
        ),
    ),
    solution=(
        "Three layers of radius 15 reach 45 frames, and the sound is 100 frames away, outside of the"
        " receptive field. The output does not depend on it, so the gradient towards it is exactly 0, and"
        " nothing can be learned from it. Seven layers reach 105 frames; a larger radius, gaps in the window,"
        " or a token that sees and is seen by all would do it, too."
    ),
    remember=(
        "layers x radius is how far a model hears; beyond it the gradient is exactly 0, and only another"
        " structure helps: layers, radius, gaps, global tokens"
    ),
    wrong={
        "no training helps: the output does not depend on that sound, so no step of training can use it": (
            r"(more|longer|better|enough) (training|steps|epochs|data|examples|recordings)|train\w* (it"
            r" )?(longer|more)|learning rate"
        ),
        "a wider model hears no farther: reach is layers x radius, whatever the width and the number of heads": (
            r"(more|further|extra|additional)"
            r" (heads|parameters|weights|neurons)|(wider|bigger|larger|greater)"
            r" (model|network|layers?|width|d_model|embedding|hidden)"
        ),
        "outside of the reach nothing is small: the gradient is exactly 0, not one that has become small on a long way": (
            r"vanish|explod|(gradients?|signals?|weights?|influence|attention) (\w+"
            r" ){0,3}(small|tiny|weak|low|diluted|fades?|decays?|shrinks?)"
        ),
        "nothing is forgotten here: there is no state that could forget, the sound was never heard": (
            r"\bforg[eo]t|(loses?|lost|fades? from) (\w+ ){0,2}memory|memor(y|ies) (\w+ )?(fades?|lost|short)"
        ),
        "the radius is that of one layer; three layers, one on top of the other, hear 45 frames far": (
            r"^(?!.*\blayer).*\b(model|network|recogni[sz]er|it|frame|output|token) (\w+"
            r" ){0,2}(hears?|sees?|reach(es)?|looks?|knows?) (\w+ ){0,4}15\b"
        ),
        "positions say where a frame stands that is heard; this one is not heard at all": (
            r"position(al)?s? (encod|embed|are|is|missing|information|vectors?)|rotary"
        ),
    },
    points={
        "how far do three layers hear, and where is the sound?": (
            r"\b45\b|3 ?(\*|x|×|times) ?15|three times|outside|beyond|receptive|\breach|farther|further|too"
            r" far|out of (sight|reach|range)|"
            r"(not|never|n't|cannot) (\w+ ){0,2}(hear|see|arrive|heard|seen|get|travel)"
        ),
        "what does the training learn of that sound? Think of the gradient, or of what the output depends on": (
            r"gradient|derivative|depend|information|influence|affect|no"
            r" (path|way|connection|signal|route)|nothing (\w+ )?(arrives|comes|flows|to learn|can be"
            r" learned)|"
            r"(not|never|n't|cannot) (\w+ ){0,2}(hear|see|know|heard|seen|known|learn)|chang(e|ing)("
            r" \w+){0,4} nothing|invisible|same (output|input|logits)"
        ),
        "what would you change, so that it is heard?": (
            r"(more|further|extra|additional|seven|7|four more|4 more|deeper)\b( \w+){0,2}"
            r" layers?|\bdeep|\bstack|(larger|greater|wider|bigger|longer|increase\w*|raise|widen|enlarge|radius"
            r" of|another)( \w+){0,3} "
            r"(radius|window|reach)|radius (\w+ ){0,3}\d|dilat|\bgaps?\b|\bstep|strid|global|full"
            r" attention|recurren|\brnn|\blstm|\bgru\b|linear"
            r" attention|\bstate\b|subsampl|downsampl|pool|convolution|fewer frames|every second"
        ),
    },
    slips={
        "no training helps: the output does not depend on that sound, so no step of training can use it": (
            "The model would learn it with more data."
        ),
        "a wider model hears no farther: reach is layers x radius, whatever the width and the number of heads": (
            "I would give it more heads and a larger hidden size."
        ),
        "outside of the reach nothing is small: the gradient is exactly 0, not one that has become small on a long way": (
            "Over 100 frames the gradients vanish."
        ),
        "nothing is forgotten here: there is no state that could forget, the sound was never heard": (
            "After 100 frames the model has forgotten the sound."
        ),
        "the radius is that of one layer; three layers, one on top of the other, hear 45 frames far": (
            "The model hears only 15 frames, and the sound is 100 away."
        ),
        "positions say where a frame stands that is heard; this one is not heard at all": (
            "It lacks positional encodings, so it cannot tell where the sound was; I would add them."
        ),
    },
    right=(
        (
            "100 frames are farther than 3 * 15 = 45, so the output does not depend on the sound at all and"
            " there is nothing to learn from. I would stack 7 layers."
        ),
        (
            "The receptive field is 45 frames to each side; changing the sound changes nothing at the output,"
            " its derivative is zero. A dilated window reaches farther at the same price."
        ),
        (
            "Each layer carries a sound 15 frames on, three layers 45. No information arrives, and no amount"
            " of training helps. Take a radius of 34 or more, or add a global token."
        ),
    ),
)

EXERCISES = (hour, saves, until, latency, dilated, near, by_block, beyond)
