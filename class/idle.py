"""The idle culler of the hub, which ends when the hub does: a hub that was killed leaves no culler behind."""

import os
import threading
import time

from jupyterhub_idle_culler import main


def end_with(parent: int, every_s: float = 1.0) -> None:
    """End this process when its parent is another one than `parent`."""
    while os.getppid() == parent:
        time.sleep(every_s)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    main()
