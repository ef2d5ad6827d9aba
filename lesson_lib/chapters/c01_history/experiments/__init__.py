"""Experiments of chapter 01; lesson_lib.experiments runs them."""
