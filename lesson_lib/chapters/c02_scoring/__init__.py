"""Chapter 02: dot-product and additive scores, and the softmax that makes weights of them."""
