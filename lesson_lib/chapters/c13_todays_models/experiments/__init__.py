"""Experiments of chapter 13; lesson_lib.experiments runs them."""
