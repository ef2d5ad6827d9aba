"""Chapter 04: several looks at once."""
