"""`python -m lesson_lib COMMAND`: see `python -m lesson_lib --help`."""

import sys

from lesson_lib.cli import main

if __name__ == "__main__":
    sys.exit(main())
