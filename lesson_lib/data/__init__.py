"""Data of the course: generated here or bundled with a library, never downloaded. One module each."""
