"""Chapter 06: layers, the translator, BERT and GPT in miniature."""
