"""The tests of lesson_lib, of the notebooks and of the house around them."""
