"""Right answers to the exercises of lesson 00, in many spellings."""

RIGHT = {
    "sum_of_three": (3, "1 + 1 + 1"),
    "weighted_sum": (5, "0.25 * 8 + 0.75 * 4", "2 + 3"),
}
