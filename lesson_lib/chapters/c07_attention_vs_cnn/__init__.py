"""Chapter 07: attention that is a convolution, ViT, SAGAN and DETR in miniature."""
