"""Chapter 05: where a token stands: sines, learned codes, rotations, biases."""
