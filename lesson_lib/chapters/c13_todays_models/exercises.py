"""Exercises of chapter 13: what the parts ask, in the learner's order."""

from lesson_lib.chapters.c13_todays_models import copying_asked

EXERCISES = (*copying_asked.ASKED,)
