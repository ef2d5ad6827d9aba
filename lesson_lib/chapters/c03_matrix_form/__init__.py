"""Chapter 03: self-attention as products of matrices."""
