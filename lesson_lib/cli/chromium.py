"""Where a Chromium or Chrome is: `python lesson_lib/cli/chromium.py` ends with 0 where there is one."""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find() -> str | None:
    """The path of the browser, or None."""
    named = next((path for name in NAMES if (path := shutil.which(name))), None)
    return named or next((path for path in PATHS if os.path.exists(path)), None)


if __name__ == "__main__":
    sys.exit(0 if find() else 1)
