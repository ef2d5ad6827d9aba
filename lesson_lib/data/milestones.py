"""The history of attention in twenty-two entries: what each added, in the course's own letters, and where the
course runs it.

Titles, years and arXiv numbers were checked against the papers' own pages or against lists that cite them.
Each entry has the same three lines: the problem, the idea, and what it could not do yet.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Milestone:
    """One entry; `formula` is in the course's notation, `lessons` are chapters' numbers, `thread` is a row of
    the drawing. `taken_up_by` names the entries that set out from what this one could not do."""

    year: int
    name: str
    thread: str
    problem: str
    idea: str
    not_yet: str
    formula: str
    lessons: tuple[str, ...]
    source: str
    taken_up_by: tuple[str, ...] = ()


THREADS = ("ancestors", "vision", "language", "attention alone", "long inputs, graphs")

MILESTONES = (
    Milestone(
        1964,
        "Kernel regression",
        "ancestors",
        "Guess y at a new x from measured pairs, without assuming a curve.",
        "Average the measured y; those whose x is near count for more.",
        "The kernel is chosen by hand; nothing is learned.",
        "score(q, k) = -(q - k)² / 2σ²",
        ("01",),
        "Nadaraya 1964, On estimating regression; Watson 1964, Smooth regression analysis",
    ),
    Milestone(
        1991,
        "Learned fovea",
        "vision",
        "A picture is too large to look at everywhere with care.",
        "A network moves a small sharp window, the fovea, until it finds its target.",
        "Targets and pictures are simple; the pieces are trained apart from each other.",
        "next place = place + f(window at place)",
        ("01",),
        "Schmidhuber & Huber 1991, Learning to generate artificial fovea trajectories for target detection"
        " (report of 1990)",
    ),
    Milestone(
        1991,
        "VISIT",
        "vision",
        "Where do people look next when they search for a thing?",
        "A network chooses one region, works on it, and goes on to the next.",
        "A model of psychologists' findings, not a system trained for a task.",
        "place = the j with the largest score",
        ("01",),
        "Ahmad 1991, VISIT: a neural model of covert visual attention",
    ),
    Milestone(
        2010,
        "Foveal glimpses",
        "vision",
        "Learn to recognise from a few glimpses, and learn where they should fall.",
        "Glimpses are combined by a Boltzmann machine; a network picks the next place.",
        "The best place has to be worked out during training in another way than the rest.",
        "p(class | glimpse 1, ..., glimpse T)",
        ("01",),
        "Larochelle & Hinton 2010, Learning to combine foveal glimpses with a third-order Boltzmann machine",
        ("RAM: recurrent visual attention",),
    ),
    Milestone(
        2014,
        "RAM: recurrent visual attention",
        "vision",
        "Looking at one place is a choice, and a choice has no gradient.",
        "Draw the place at random, and make lucky draws more probable (REINFORCE).",
        "Noisy learning; one place at a time.",
        "output = glimpse(place), place ~ Normal(f(state), σ²)",
        ("01",),
        "Mnih et al. 2014, arXiv:1406.6247",
        ("Show, attend and tell",),
    ),
    Milestone(
        2014,
        "Encoder and decoder",
        "language",
        "Translate a sentence of any length with networks of a fixed size.",
        "One recurrent network reads all into a vector, another writes from it.",
        "Everything must fit into that one vector.",
        "output = the last state, for every query",
        ("01",),
        "Cho et al. 2014, arXiv:1406.1078; Sutskever, Vinyals & Le 2014, arXiv:1409.3215",
        ("Bahdanau's attention",),
    ),
    Milestone(
        2014,
        "Bahdanau's attention",
        "language",
        "All that was read must pass through one vector.",
        "Before each word that it writes, the decoder looks over all that was read, and mixes.",
        "Still recurrent: one step after the other, in reading and in writing.",
        "score(q, k) = v · tanh(W_q q + W_k k)",
        ("01", "02"),
        "Bahdanau, Cho & Bengio 2014, arXiv:1409.0473",
        ("Transformer",),
    ),
    Milestone(
        2015,
        "Show, attend and tell",
        "vision",
        "Describe a picture in words, and look at the right part for each word.",
        "Bahdanau's mixture over the places of a CNN's feature map; hard and soft looking compared.",
        "The CNN below does not attend at all.",
        "attend(decoder state, places of the map, places of the map)",
        ("01", "07"),
        "Xu et al. 2015, arXiv:1502.03044",
        ("Non-local networks",),
    ),
    Milestone(
        2015,
        "Luong's scores",
        "language",
        "The additive score needs a small network for every pair.",
        "Compare by a product: q · k, or q · W k.",
        "Large widths make large scores; the factor 1/√d comes later.",
        "score(q, k) = q · W k",
        ("02",),
        "Luong, Pham & Manning 2015, arXiv:1508.04025",
        ("Transformer",),
    ),
    Milestone(
        2016,
        "Attention within a text",
        "language",
        "A recurrent network's memory of one text is one vector, too.",
        "While it reads a text, the network looks back over that same text: queries and keys come from one"
        " sequence.",
        "The recurrent network stays.",
        "attend(x, x, x), beside a recurrent network",
        ("01", "03"),
        "Cheng, Dong & Lapata 2016, arXiv:1601.06733",
        ("Transformer",),
    ),
    Milestone(
        2017,
        "Transformer",
        "attention alone",
        "Recurrence makes training slow: step t waits for step t - 1.",
        "Leave it out. Self-attention with several heads, positions added to the input, and a small network"
        " behind.",
        "The cost grows with the square of the length.",
        "score(q, k) = q · k / √d_k, in several heads",
        ("03", "04", "05", "06"),
        "Vaswani et al. 2017, arXiv:1706.03762",
        (
            "Linear attention",
            "Windows for long texts",
            "The same numbers, less memory",
        ),
    ),
    Milestone(
        2017,
        "Squeeze and excitation",
        "vision",
        "A convolution treats all its channels alike, whatever the picture shows.",
        "Look at the whole picture once, and give each channel a weight between 0 and 1.",
        "Weights for channels, none for pairs of places.",
        "output_c = weight_c x_c, the weight from the means of all channels",
        ("07",),
        "Hu et al. 2017, arXiv:1709.01507",
        ("Non-local networks",),
    ),
    Milestone(
        2017,
        "Graph attention",
        "long inputs, graphs",
        "In a graph it is known who may speak to whom.",
        "Attention among neighbours only: the edges are the mask.",
        "Nothing travels further than one edge in one layer.",
        "mask[i, j] = there is an edge from j to i",
        ("10",),
        "Veličković et al. 2017, arXiv:1710.10903",
    ),
    Milestone(
        2017,
        "Non-local networks",
        "vision",
        "A convolution reaches its neighbours only.",
        "Attention among all places of a feature map, put into a CNN.",
        "The square of the number of places: late, small maps only.",
        "x + attend(x W_q, x W_k, x W_v) W_o",
        ("07",),
        "Wang et al. 2017, arXiv:1711.07971; in a generator: Zhang et al. 2018 (SAGAN), arXiv:1805.08318",
    ),
    Milestone(
        2018,
        "Relative positions",
        "attention alone",
        "Position 7 means little; three places to the left means much.",
        "Add a term for the distance to key and value.",
        "Beyond a largest distance all are alike.",
        "score_ij = q_i · (k_j + r_(j-i)) / √d_k",
        ("05",),
        "Shaw, Uszkoreit & Vaswani 2018, arXiv:1803.02155",
    ),
    Milestone(
        2018,
        "BERT",
        "attention alone",
        "Labelled sentences are few, sentences are many.",
        "Hide words, guess them from both sides, and keep the network for other tasks.",
        "It fills gaps; it does not write.",
        "p(hidden words | words not hidden), no causal mask",
        ("06",),
        "Devlin et al. 2018, arXiv:1810.04805",
    ),
    Milestone(
        2019,
        "Convolution as attention",
        "vision",
        "Are convolution and attention rivals, or relatives?",
        "With the right positions, heads compute any convolution exactly.",
        "It can be done; training need not do it.",
        "score_ij is largest where j - i is the head's own step",
        ("07",),
        "Cordonnier, Loukas & Jaggi 2019, arXiv:1911.03584",
    ),
    Milestone(
        2020,
        "Linear attention",
        "long inputs, graphs",
        "The table of weights has n² entries.",
        "Replace exp(q · k) by φ(q) · φ(k), and sum over keys first: the cost is in proportion to n.",
        "The weights are less sharp; some tasks suffer.",
        "exp(q · k) becomes φ(q) · φ(k)",
        ("08", "11"),
        "Katharopoulos et al. 2020, arXiv:2006.16236; a family of them: Tay et al. 2020, arXiv:2009.06732 and"
        " arXiv:2011.04006",
        ("The same numbers, less memory",),
    ),
    Milestone(
        2020,
        "Windows for long texts",
        "long inputs, graphs",
        "Thousands of tokens do not fit.",
        "Each token looks at its neighbours only, a few at all.",
        "How large the window should be is a guess again.",
        "mask[i, j] = |i - j| <= radius",
        ("09",),
        "Beltagy, Peters & Cohan 2020, arXiv:2004.05150",
    ),
    Milestone(
        2020,
        "Vision Transformer",
        "vision",
        "Can pictures do without convolution?",
        "Cut the picture into patches, and treat them as words.",
        "It needs many pictures, since it knows nothing of neighbourhood.",
        "x = patches W + positions, then attend(x W_q, x W_k, x W_v)",
        ("07",),
        "Dosovitskiy et al. 2020, arXiv:2010.11929; boxes from queries: Carion et al. 2020 (DETR),"
        " arXiv:2005.12872",
    ),
    Milestone(
        2021,
        "Rotary positions",
        "attention alone",
        "Relative positions cost a further table.",
        "Rotate queries and keys by their places: the score then holds the difference.",
        "Differences never trained are still unknown.",
        "(R(i) q) · (R(j) k) = q · R(j - i) k",
        ("05",),
        "Su et al. 2021, arXiv:2104.09864",
    ),
    Milestone(
        2022,
        "The same numbers, less memory",
        "long inputs, graphs",
        "The table of weights is larger than everything else.",
        "Never store it: compute softmax piece by piece, on one device or around a ring of them.",
        "The number of products stays n².",
        "softmax(scores) V, piece by piece, the same numbers",
        ("09", "11"),
        "Dao et al. 2022 (FlashAttention), arXiv:2205.14135; Liu, Zaharia & Abbeel 2023 (ring),"
        " arXiv:2310.01889",
    ),
)
