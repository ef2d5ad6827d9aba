"""Chapter 13: what today's models change, how a model copies, and a model on your own disk."""
