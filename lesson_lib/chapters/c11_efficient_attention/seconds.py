"""Second problems of chapter 11, in the learner's order, then those of its exercises."""

import random
from dataclasses import replace
from math import ceil

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.checks.exercise import Case, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Number, fresh
from lesson_lib.efficient import attend_part, merge


def merge_outputs_2(
    outputs: Float[Tensor, "parts n d"],
    sums: Float[Tensor, "parts n"],
) -> Float[Tensor, "n d"]:
    shares = sums / sums.sum(0)
    return (shares[..., None] * outputs).sum(0)


def _many(seed: int, parts: int, n: int, d: int) -> Case:
    return {"outputs": drawn(seed, parts, n, d), "sums": drawn(seed + 1, parts, n).exp()}


MERGE_MANY = Write(
    name="merge_outputs_2",
    title="Any number of parts",
    asked=(
        "n queries were answered by several machines: outputs (parts, n, d) and sums of exp(score) (parts, n)."
        " Give the outputs of attention to all keys, (n, d)"
    ),
    stages=(
        Stage(
            "one query, three parts with sums 4, 12 and 16",
            lambda: [
                {"outputs": table([[[17.5]], [[40.0]], [[0.0]]]), "sums": table([[4.0], [12.0], [16.0]])}
            ],
            "(4 · 17.5 + 12 · 40 + 16 · 0) / 32 = 17.1875.",
        ),
        Stage("five parts, three queries", lambda: [_many(1, 5, 3, 2)], "The shares of a query sum to 1."),
        Stage(
            "as many parts as queries and numbers",
            lambda: [_many(3, 3, 3, 3)],
            "Divide by the sum over the parts, the first axis.",
        ),
    ),
    hints=(
        "Which axis counts the parts?",
        "sums has one axis less than outputs: which one is missing?",
        "Over which axis must the shares sum to 1?",
    ),
    solution=merge_outputs_2,
    remember="any number of parts, in any order: shares of the sums",
    slips={
        "that is the plain mean of the parts": ("sums / sums.sum(0)", "0 * sums + 1 / len(sums)"),
        "the shares must sum to 1 over the parts, the first axis": (
            "sums.sum(0)",
            "sums.sum(1, keepdim=True)",
        ),
        "one share for all queries does not do": ("sums.sum(0)", "sums.sum()"),
        "the division by the sum of all parts is missing": ("sums / sums.sum(0)", "sums"),
        "these are sums of exponentials already; no softmax of them": (
            "sums / sums.sum(0)",
            "sums.softmax(0)",
        ),
    },
)


def in_a_ring_2(
    query: Float[Tensor, "n d"],
    key: Float[Tensor, "n d"],
    value: Float[Tensor, "n d_v"],
    machines: int,
) -> Float[Tensor, "n d_v"]:
    q, k, v = (x.chunk(machines) for x in (query, key, value))
    have = [attend_part(*own) for own in zip(q, k, v, strict=True)]
    for _ in range(machines - 1):
        q, have = q[-1:] + q[:-1], have[-1:] + have[:-1]
        came = [attend_part(*now) for now in zip(q, k, v, strict=True)]
        have = [merge(*two) for two in zip(have, came, strict=True)]
    return torch.cat([part.output for part in have])


def _travel(seed: int, n: int, d: int, d_v: int, machines: int) -> Case:
    q, k = drawn(seed, n, d), drawn(seed + 1, n, d)
    return {"query": q, "key": k, "value": drawn(seed + 2, n, d_v), "machines": machines}


QUERIES_TRAVEL = Write(
    name="in_a_ring_2",
    title="Queries travel",
    asked=(
        "now keys and values stay, which saves sending where a long cache meets few new tokens. Queries go"
        " from each machine to the next, with the parts that they have found. Nobody is brought home: give the"
        " outputs as they lie in the end, machine after machine"
    ),
    stages=(
        Stage("one machine", lambda: [_travel(1, 3, 2, 2, 1)], "Nothing travels."),
        Stage(
            "six tokens on three machines", lambda: [_travel(4, 6, 4, 2, 3)], "A part goes with its queries."
        ),
        Stage(
            "eight tokens on four machines",
            lambda: [_travel(7, 8, 2, 3, 4)],
            "Machine 0 ends with the queries of machine 1.",
        ),
    ),
    hints=(
        "What has to travel with a query, so that its new part can be merged?",
        "After machines - 1 hand-overs, on which machine are the first queries?",
        "In which order do the parts lie then? Need anything be done about it?",
    ),
    solution=in_a_ring_2,
    remember="either may travel: send what is smaller",
    slips={
        "what a query has found stays behind: its part travels with it": (
            "have[-1:] + have[:-1]\n        came",
            "have\n        came",
        ),
        "you bring them home; here machine 0 ends with the queries of machine 1": (
            "    return torch.cat(",
            "    have = have[-1:] + have[:-1]\n    return torch.cat(",
        ),
        "keys travel here, values do not; now both stay": (
            "        came",
            "        k = k[-1:] + k[:-1]\n        came",
        ),
        "one hand-over too many: the first block counts twice": ("range(machines - 1)", "range(machines)"),
        "what came is merged with what is there, it does not replace it": (
            "merge(*two) for two in zip(have, came, strict=True)",
            "new for new in came",
        ),
    },
)


def with_global_2(n: int, radius: int, place: int) -> Bool[Tensor, "n n"]:
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return (j <= i) & ((i - j <= radius) | (j == place) | (i == place))


def _of(n: int, radius: int, place: int) -> Case:
    return {"n": n, "radius": radius, "place": place}


GLOBAL_BEFORE = Write(
    name="with_global_2",
    title="Global, and causal",
    asked=(
        "the mask (n, n) of a model that writes: nobody sees later tokens. Of the earlier ones each sees the"
        " `radius` nearest, itself, and token `place`, wherever that stands; token `place` sees all earlier"
        " ones"
    ),
    stages=(
        Stage(
            "five tokens, radius 1, token 0 is global",
            lambda: [_of(5, 1, 0)],
            "Token 3 sees 0, 2 and 3; token 0 sees itself alone.",
        ),
        Stage(
            "token 3 of seven",
            lambda: [_of(7, 1, 3)],
            "Token 3 sees 0 to 3. Tokens 5 and 6 see it, tokens 0 to 2 do not.",
        ),
        Stage("radius 0, the last token", lambda: [_of(6, 0, 5)], "It sees all; before it, each itself."),
    ),
    hints=(
        "With i a column and j a row of numbers, what says that j is not later?",
        "Three reasons to see j: which ones? Are they joined by & or by |?",
        "What do j == place and i == place say?",
    ),
    solution=with_global_2,
    remember="not later, and (near, or the global one, or being the global one)",
    slips={
        "later tokens are seen: j <= i for everybody, the global token too": (
            "(j <= i) & ((i - j <= radius)",
            "(((i - j).abs() <= radius)",
        ),
        "token `place` sees all earlier ones, not its neighbours alone": (" | (i == place)", ""),
        "those behind it see token `place`, however far": (" | (j == place)", ""),
        "the nearest `radius` earlier tokens are seen, and the token itself": (
            "i - j <= radius",
            "i - j < radius",
        ),
    },
)


def random_features_2(x: Float[Tensor, "n d"], directions: Float[Tensor, "m d"]) -> Float[Tensor, "n twice"]:
    y = x / x.shape[-1] ** 0.25
    along = y @ directions.mT
    both = torch.cat([along, -along], -1) - y.square().sum(-1, keepdim=True) / 2
    return both.exp() / (2 * len(directions)) ** 0.5


BOTH_WAYS = Write(
    name="random_features_2",
    title="Each direction both ways",
    asked=(
        "2 m features from m directions: first those of w, then those of -w, exp(±w · y - |y|² / 2), all"
        " divided by √(2 m); y = x / d^(1/4). Shape (n, 2 m)"
    ),
    stages=(
        Stage(
            "one number, one direction",
            lambda: [{"x": table([[1.0]]), "directions": table([[1.0]])}],
            "exp(1/2) and exp(-3/2), both divided by the root of 2: 1.1658 and 0.1578.",
        ),
        Stage(
            "three tokens of width 5, seven directions",
            lambda: [{"x": drawn(5, 3, 5), "directions": drawn(6, 7, 5)}],
            "Fourteen columns.",
        ),
    ),
    hints=(
        "What are the features of -w, once you have y @ directions.mT?",
        "Which function joins two tables side by side?",
        "How many features does a product of two tokens average over?",
    ),
    solution=random_features_2,
    remember="a direction and its opposite: what one overshoots, the other undershoots",
    slips={
        "the features of -w are missing": ("torch.cat([along, -along], -1)", "along"),
        "there are 2 m features: divide by the root of 2 m": ("(2 * len(directions))", "len(directions)"),
        "|y|² / 2 is taken off both halves": (
            "torch.cat([along, -along], -1) - y.square().sum(-1, keepdim=True) / 2",
            "torch.cat([along - y.square().sum(-1, keepdim=True) / 2, -along], -1)",
        ),
        "first all of w, then all of -w": (
            "torch.cat([along, -along], -1)",
            "torch.stack([along, -along], -1).flatten(1)",
        ),
    },
)


def cache_of_groups(first: Number, n: int) -> Number:
    """The size of a cache, for other layers, heads and lengths."""

    def make(draw: random.Random) -> Number:
        layers, queries, keys = draw.choice((16, 24, 48)), draw.choice((16, 32, 64)), draw.choice((2, 4, 8))
        width, tokens = draw.choice((64, 128)), 1024 * draw.choice((16, 32, 64, 256))
        size = f"2 * {layers} * {keys} * {width} * {tokens} * 2 / 2**30"
        value = 2 * layers * keys * width * tokens * 2 / 2**30
        return replace(
            first,
            asked=(
                f"a cache of keys and values: {layers} layers; {queries} query heads that share {keys} key"
                f" heads, each {width} numbers wide, values as well; {tokens:,} tokens; 2 bytes a number: how"
                " many GiB?"
            ),
            answer=size,
            value=value,
            solution=f"2 (key and value) * {layers} layers * {keys} heads * {width} * {tokens} tokens * 2 bytes",
            slips={
                f"{queries} query heads share {keys} heads of keys and values: only those {keys} are kept": (
                    f"{size} * {queries} / {keys}"
                ),
                "half of it: keys AND values are kept, and a number has 2 bytes": f"{size} / 2",
                "that is in GB, units of 10^9 bytes; a GiB is 2^30 bytes": f"{size} * 2**30 / 10**9",
                f"that is one layer; each of the {layers} has a cache of its own": f"{size} / {layers}",
                "queries are asked with once, and not kept": f"{size} * ({queries} + 2 * {keys}) / (2 * {keys})",
                "that is in bytes; a GiB is 2^30 of them": f"{size} * 2**30",
                "that is in MiB; a GiB has 1,024 of them": f"{size} * 2**10",
            },
        )

    return fresh(n, make)


def one_tile_2(log_sum: Float[Tensor, " n"], scores: Float[Tensor, "n tile"]) -> Float[Tensor, " n"]:
    return torch.logaddexp(log_sum, scores.logsumexp(1))


def _with_one_more(log_sum: Tensor, scores: Tensor) -> Tensor:
    """The old sum as one score more."""
    return torch.cat([log_sum[:, None], scores], 1).logsumexp(1)


def _sums(log_sum: list[float], scores: list[list[float]]) -> Case:
    return {"log_sum": table(log_sum), "scores": table(scores)}


LN_2, LN_3, LN_4 = 0.6931472, 1.0986123, 1.3862944

LOG_SUM_OF_TILES = Write(
    name="one_tile_2",
    title="The sum alone",
    asked=(
        "a loss over 128,000 words needs ln of the sum of exp(score), and no values. `log_sum` is that of all"
        " tiles so far, one number a row; a tile of scores comes: return the new log_sum, (n,)"
    ),
    stages=(
        Stage(
            "a sum of 4 so far, and a score of ln 4",
            lambda: [_sums([LN_4], [[LN_4]])],
            "4 + 4 = 8: ln 8 = 2.0794.",
        ),
        Stage(
            "three rows, tiles of two",
            lambda: [{"log_sum": drawn(1, 3), "scores": drawn(2, 3, 2)}],
            "Each row has its own sum.",
        ),
        Stage(
            "the first tile: nothing so far, -inf",
            lambda: [_sums([-torch.inf, -torch.inf], [[LN_3, 0.0], [LN_2, LN_2]])],
            "exp(-inf) = 0: what is left is the tile's own sum, 4 in both rows.",
        ),
        Stage(
            "200 and -200",
            lambda: [_sums([200.0, -200.0], [[201.0, 200.0], [-200.0, -201.0]])],
            "exp(200) overflows, exp(-200) vanishes: subtract the larger before exp.",
        ),
    ),
    hints=(
        "Which two numbers are added: exp of what, and exp of what?",
        "scores.logsumexp(1) is safe. What is it the logarithm of?",
        "Does torch have a function for ln(exp a + exp b)?",
    ),
    reference=_with_one_more,
    solution=one_tile_2,
    remember="ln(exp a + exp b), with the larger subtracted first",
    slips={
        "logarithms that are added multiply their sums": (
            "torch.logaddexp(log_sum, scores.logsumexp(1))", "log_sum + scores.logsumexp(1)",
        ),
        "the tiles before are forgotten": (
            "torch.logaddexp(log_sum, scores.logsumexp(1))", "scores.logsumexp(1)",
        ),
        "that is the larger of both; the sums are added": ("torch.logaddexp(", "torch.maximum("),
        "each score counts, not the largest of the tile alone": (".logsumexp(1)", ".amax(1)"),
        "a row is a query: sum along axis 1": (".logsumexp(1)", ".logsumexp((0, 1)).expand(len(log_sum))"),
        "exp(200) is inf: subtract the larger first": (
            "torch.logaddexp(log_sum, scores.logsumexp(1))", "(log_sum.exp() + scores.exp().sum(1)).log()",
        ),
        "the sum itself is asked for nowhere: its logarithm is": (
            "torch.logaddexp(log_sum, scores.logsumexp(1))",
            "torch.logaddexp(log_sum, scores.logsumexp(1)).exp()",
        ),
    },
)  # fmt: skip


def with_shared_keys_2(
    query: Float[Tensor, "n h d"], key: Float[Tensor, "m g d"], value: Float[Tensor, "m g d"]
) -> Float[Tensor, "n h d"]:
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    heads_first = (x.transpose(0, 1) for x in (query, key, value))
    return attend(*heads_first).output.transpose(0, 1)


def _by_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    shared = query.shape[1] // key.shape[1]
    heads = [
        attend(query[:, i], key[:, i // shared], value[:, i // shared]).output for i in range(query.shape[1])
    ]
    return torch.stack(heads, 1)


def _tokens_first(seed: int, n: int, m: int, h: int, g: int, d: int) -> Case:
    return {"query": drawn(seed, n, h, d), "key": drawn(seed + 1, m, g, d), "value": drawn(seed + 2, m, g, d)}


TOKENS_FIRST = Write(
    name="with_shared_keys_2",
    title="Tokens first",
    asked=(
        "some libraries keep tokens before heads: query (n, h, d), key and value (m, g, d). Neighbours share"
        " again; return (n, h, d)"
    ),
    stages=(
        Stage(
            "one token, four heads, values 2 and 8",
            lambda: [
                {"query": drawn(1, 1, 4, 1), "key": drawn(2, 1, 2, 1), "value": table([[[2.0], [8.0]]])}
            ],
            "2 2 8 8, one below the other.",
        ),
        Stage(
            "three queries, five keys, four heads of queries and two of keys",
            lambda: [_tokens_first(1, 3, 5, 4, 2, 7)],
            "Heads stand on axis 1 here.",
        ),
        Stage(
            "one head of keys for all; six and three",
            lambda: [_tokens_first(5, 3, 2, 5, 1, 2), _tokens_first(9, 2, 5, 6, 3, 4)],
            "shared is h / g.",
        ),
    ),
    hints=(
        "On which axis are the heads, and so along which must keys be repeated?",
        "attend compares along the last axis but one. What stands there, and what must?",
        "Which axes of the output must be swapped back?",
    ),
    reference=_by_head,
    solution=with_shared_keys_2,
    remember="heads first for attend, and back again",
    slips={
        "neighbours share: 0 0 1 1, not 0 1 0 1": (
            "key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)",
            "key.repeat(1, shared, 1), value.repeat(1, shared, 1)",
        ),
        "keys go to neighbours, values do not": (
            "value.repeat_interleave(shared, 1)", "value.repeat(1, shared, 1)",
        ),
        "values go to neighbours, keys do not": (
            "key.repeat_interleave(shared, 1)", "key.repeat(1, shared, 1)",
        ),
        "tokens are asked for in front: swap the axes back": (".output.transpose(0, 1)", ".output"),
        "all heads look at key head 0": (
            "key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)",
            "(x[:, :1].expand(-1, query.shape[1], -1) for x in (key, value))",
        ),
    },
)  # fmt: skip


def ring_machines(first: Number, n: int) -> Number:
    """Another ring: longer texts, other vectors, larger machines. All machines get equally many tokens."""

    def make(draw: random.Random) -> Number:
        times, gib = draw.choice([1, 3, 5, 7, 9, 11]), draw.choice([4, 8, 16])
        d = draw.choice([1024, 2048, 4096])
        share = gib * 2**30 // (8 * 4 * d)  # tokens that fit into one machine, a power of two
        machines = times * draw.choice([2, 4, 8])
        tokens, room = machines * share, f"({gib} * 2**30)"
        size, whole = 4 * d, f"8 * {d} * 4 * {tokens}"
        power = f"{times} * 2^" if times > 1 else "2^"
        power += str((tokens // times).bit_length() - 1)
        return replace(
            first,
            title="How many machines make the ring?",
            asked=(
                f"a ring shares n = {power} = {tokens:,} tokens out in equal parts; a machine holds"
                " for each of ITS tokens a query, a key, a value, an output, and two visiting blocks of keys and"
                " values, each as large as its own part, the one it works with and the one that comes: vectors of"
                f" {d:,} numbers of 4 bytes; tiles are too small to count. Each machine has {gib} GiB free for that"
                " (a GiB is 2^30 bytes): how many machines?"
            ),
            answer=f"{whole} / {room}",
            value=machines,
            hints=(
                first.hints[0],
                (
                    f"How many bytes are {d:,} numbers? So how many KiB does a token take, and how many tokens fit"
                    f" into {gib} GiB?"
                ),
                (
                    "Every machine holds only its own share of the tokens, and blocks as large as that share. So by"
                    " what do you divide n?"
                ),
            ),
            solution=(
                f"4 + 2 * 2 = 8 vectors of {size // 1024} KiB: {8 * size // 1024} KiB a token. {gib} GiB hold"
                f" {share:,} tokens, and {tokens:,} / {share:,} = {machines} machines. No table of n^2 numbers is"
                " anywhere."
            ),
            slips={
                "the ring computes tile by tile: no table of n^2 numbers is ever held": f"4 * {tokens}**2 / {room}",
                "a table of n^2 numbers, shared out by rows and by columns, is never held: a ring works tile by tile": (
                    f"{tokens} / sqrt({room} / 4)"
                ),
                "the block that comes while this one is worked with takes room, too: two blocks, 8 vectors a token": (
                    f"(4 + 2) * {size} * {tokens} / {room}"
                ),
                "half of it: the two visiting blocks were forgotten, or a number has 4 bytes, not 2": (
                    f"4 * {size} * {tokens} / {room}"
                ),
                "a block holds keys AND values, so two blocks are 4 vectors a token; that makes 8 and not more": (
                    f"(4 + 8) * {size} * {tokens} / {room}"
                ),
                "three blocks are too many: its own keys and values, one that it works with, one that comes: 3 + 4 + the output = 8 vectors": (
                    f"(4 + 6) * {size} * {tokens} / {room}"
                ),
                "the output of a token is a vector, too: 8 in all": f"7 * {size} * {tokens} / {room}",
                "that is with GB, units of 10^9 bytes; a GiB is 2^30 bytes": f"{whole} / ({gib} * 10**9)",
                "that is with GB in place of GiB, rounded up; a GiB is 2^30 bytes": (
                    ceil(machines * 2**30 / 10**9)
                ),
                "that is what all machines hold together, in GiB; divide it by what one machine has free": (
                    f"{whole} / 2**30"
                ),
                "machines share the tokens out: one that holds all keys and values gains nothing from the others": 1,
                "that is how many tokens fit into one machine; how many machines share all of them?": share,
                "that is one vector a token; there are 8": f"{size} * {tokens} / {room}",
                "one number of 4 bytes for each token: but a token has 8 vectors of many numbers": (
                    f"4 * {tokens} / {room}"
                ),
                "a number has 4 bytes; you left them out": f"8 * {d} * {tokens} / {room}",
                "a number has 4 bytes, not 8": f"8 * {d} * 8 * {tokens} / {room}",
                "that is the number of bytes a token takes": f"8 * {d} * 4",
            },
        )  # fmt: skip

    return fresh(n, make)
