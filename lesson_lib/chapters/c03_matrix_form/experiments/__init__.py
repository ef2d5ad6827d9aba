"""Experiments of chapter 03; lesson_lib.experiments runs them."""
