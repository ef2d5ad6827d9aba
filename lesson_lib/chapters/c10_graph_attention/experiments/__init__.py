"""Experiments of chapter 10; lesson_lib.experiments runs them."""
