"""Slips of many exercises: queries, keys and values that have changed places."""

from lesson_lib.checks.exercise import Edit

MEANINGS = {  # which of q, k, v stands where the query, the key and the value should
    "qvk": "keys and values have changed places: the keys are compared, the values are mixed",
    "kqv": "queries and keys have changed places: each query has a row of weights, over the keys",
    "vkq": "queries and values have changed places: the queries ask, the values are mixed",
    "kvq": "all three have changed places: your keys ask, your values are compared, your queries are mixed",
    "vqk": "all three have changed places: your values ask, your queries are compared, your keys are mixed",
    "qkk": "the keys are mixed in place of the values",
    "qvv": "the values are compared with the queries in place of the keys",
}


def exchanged(
    before: str, names: str = "query key value", *, indent: int = 4, without: str = ""
) -> dict[str, Edit]:
    """Slips, as edits: right before the line that begins with `before`, the three change places, in each way
    that `without` does not leave out.

    >>> list(exchanged("scores =", "q k v", without="kqv vkq kvq vqk qkk qvv").values())
    [('scores =', 'q, k, v = q, v, k\\n    scores =')]
    """
    own = dict(zip("qkv", names.split(), strict=True))
    return {
        meaning: (
            before,
            f"{', '.join(own.values())} = {', '.join(own[role] for role in roles)}\n{' ' * indent}{before}",
        )
        for roles, meaning in MEANINGS.items()
        if roles not in without.split()
    }
