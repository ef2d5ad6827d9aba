"""Right answers to the exercises of lesson 00, in many spellings."""

RIGHT = {}
