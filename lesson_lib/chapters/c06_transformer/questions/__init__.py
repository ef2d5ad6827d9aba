"""What chapter 06 asks: words in Markdown, and beside them what of it is code."""
