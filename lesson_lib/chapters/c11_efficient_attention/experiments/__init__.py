"""Experiments of chapter 11; lesson_lib.experiments runs them."""
