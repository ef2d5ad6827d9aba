"""Experiments of chapter 04; lesson_lib.experiments runs them."""
