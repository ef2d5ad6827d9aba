"""Chapter 11: the same numbers for less memory, other numbers for less work."""
