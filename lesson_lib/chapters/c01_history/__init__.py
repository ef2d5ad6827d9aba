"""Chapter 01: a look at everything, against windows and networks that read in order; and where to look."""
