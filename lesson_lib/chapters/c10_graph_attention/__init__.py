"""Chapter 10: attention along edges."""
