"""Experiments of chapter 09; lesson_lib.experiments runs them."""
