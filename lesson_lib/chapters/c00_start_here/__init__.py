"""Chapter 00: is the course ready, and how does a check answer?."""
