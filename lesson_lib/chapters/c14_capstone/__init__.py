"""14 · The capstone: everything written once more, in a file of the learner's own."""
