"""Experiments of chapter 05; lesson_lib.experiments runs them."""
