"""Experiments of chapter 06; lesson_lib.experiments runs them."""
