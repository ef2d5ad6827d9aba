"""Data of several chapters, one module each: generated here or bundled with a library, never downloaded. What
one chapter reads lies with it."""
