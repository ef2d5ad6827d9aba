"""Experiments of chapter 07; lesson_lib.experiments runs them."""
