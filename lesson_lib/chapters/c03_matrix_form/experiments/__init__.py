"""Experiments of chapter 02; lesson_lib.experiments runs them."""
