"""Experiments of chapter 08; lesson_lib.experiments runs them."""
