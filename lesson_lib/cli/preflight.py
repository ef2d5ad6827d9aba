"""What must hold before anything is installed, and the installation itself: `make setup` runs this file with
whatever `python3` there is.

Only the standard library, and only syntax that old Pythons can read, since its first job is to turn those
away in one sentence. pip's lines go to a file, and are shown where it fails.
"""

import os
import sys

OLDEST, NEWEST = (3, 11), (3, 15)
CPU_GB, CUDA_GB = 1.5, 5.9  # .venv with torch's CPU build, with its CUDA build (measured on Linux by du -sh)
WHEEL_GB = 0.2  # to download: torch's CPU build
ROOM_GIB = 3  # the smaller .venv, and what pip unpacks and keeps meanwhile
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BUILDS = """\
torch comes next. Its CUDA build, for NVIDIA GPUs, makes .venv {cuda} GB large; its CPU build {cpu} GB, with
{wheel} GB to download. No NVIDIA GPU is found here, and {free:.0f} GB are free on the disk.""".format
SELECTOR = """\
Where the CPU build lies is said by PyTorch's installation selector: open pytorch.org, "Get started", choose
Linux, Pip, Python and CPU, and paste here the command that it shows (Enter alone: the CUDA build)."""
PLAIN = (
    "torch comes next: its CUDA build (.venv is {cuda} GB large then), or its CPU build ({cpu} GB) where"
    " PIP_EXTRA_INDEX_URL is set to the address of that, or, with uv, UV_TORCH_BACKEND=cpu (docs/install.md)."
).format


def python_problem(version, others=()):
    """A sentence for a Python that is too old or too new, else None. `others`: names of other Pythons that
    would do."""
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return None
    repair = (
        "make lab PYTHON=%s" % others[0]
        if others
        else "install Python 3.14, then: make lab PYTHON=python3.14"
    )
    return "This is Python %d.%d, and the course needs %d.%d to %d.%d: %s" % (
        tuple(version[:2]) + OLDEST + NEWEST + (repair,)
    )


def mac_problem(platform, processor):
    """A sentence for a Mac with an Intel processor, else None."""
    if platform != "darwin" or processor != "x86_64":
        return None
    return (
        "This Mac has an Intel processor, or a Python made for one: PyTorch ended there with version 2.2.2,"
        " and the course needs 2.11. On a Mac with an Apple processor install Python for it from python.org;"
        " else take another machine."
    )


def disk_problem(free_gib, need_gib=ROOM_GIB):
    """A sentence where the disk has too little room, else None."""
    if free_gib >= need_gib:
        return None
    return (
        "The disk has %.1f GB free where the course lies, and it needs %d GB: free some room, or move the"
        " folder."
        % (
            free_gib,
            need_gib,
        )
    )


def venv_problem(modules):
    """A sentence where this Python cannot make a virtual environment, else None. `modules`: those that it
    has."""
    if "venv" in modules and "ensurepip" in modules:
        return None
    return (
        "This Python has no venv module, which keeps the course apart from the rest of your machine: "
        "on Debian or Ubuntu, sudo apt install python3-venv; elsewhere, install Python from python.org."
    )


def torch(wanted):
    """0 where the rest may be installed: torch is there, its CPU build now is, or the plain one is to come.
    1 where the CPU build could not be installed."""
    if not sys.platform.startswith("linux") or (installed_torch() or "").split("+")[0] == wanted:
        return 0
    words = cpu_build(free_gib())
    return pip("torch's CPU build", *(words + ["torch==" + wanted])) if words else 0


def cpu_build(free):
    """What is said to the installer to get torch's CPU build: uv's own option, or, to pip, an address that is
    pasted at the terminal. [] where the plain build is to come: no terminal, an NVIDIA GPU, an installer that
    is told already, or an answer that says so."""
    live = sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
    told = [name for name in ("PIP_EXTRA_INDEX_URL", "UV_TORCH_BACKEND") if os.environ.get(name)]
    if not live or nvidia() or told:
        print(PLAIN(cpu=CPU_GB, cuda=CUDA_GB))
        return []
    print(BUILDS(cpu=CPU_GB, cuda=CUDA_GB, wheel=WHEEL_GB, free=free))
    if input("Take the CPU build? [Y/n] ").strip().lower().startswith("n"):
        return []
    if uv():
        return ["--torch-backend", "cpu"]
    index = pasted_index()
    return ["--index-url", index] if index else []


def pasted_index():
    """The address of torch's CPU builds, from the command that the selector shows; '' for Enter alone."""
    print(SELECTOR)
    while True:
        command = input("> ").strip()
        index = address(command)
        if index or not command:
            return index or ""
        print("That names no --index-url and address; paste the whole command, or press Enter alone.")


def address(command):
    """The address behind --index-url in a command of the selector's, else None."""
    from re import search

    match = search("index-url[ =]+[\"']?(https?://[^\\s\"']+)", command)
    return match.group(1) if match else None


def uv():
    """The path of uv, which installs what pip does, and faster; '' where there is none."""
    from shutil import which

    return which("uv") or ""


def nvidia():
    """True where the driver of an NVIDIA GPU is."""
    from shutil import which

    return os.path.exists("/proc/driver/nvidia/version") or bool(which("nvidia-smi"))


def other_pythons():
    """Names on PATH of Pythons that the course can use, newest first."""
    from shutil import which
    from subprocess import DEVNULL, call

    names = ["python%d.%d" % (OLDEST[0], minor) for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    return [
        name for name in names if which(name) and call([name, "-c", ""], stdout=DEVNULL, stderr=DEVNULL) == 0
    ]


def pinned_torch(folder=ROOT):
    """The version in requirements.txt's line torch==..."""
    with open(os.path.join(folder, "requirements.txt")) as file:
        return next(line.split("==")[1].strip() for line in file if line.startswith("torch=="))


def installed_torch():
    """The version of the torch that this Python has, or None."""
    from importlib import metadata

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def free_gib(folder=ROOT):
    """Free room on the disk of `folder`, in GiB."""
    from shutil import disk_usage

    return disk_usage(folder).free / 2.0**30


def installed(command, log, shown):
    """The exit code of pip, or of uv. Its lines go to the file `log`; `shown(line)` is told each."""
    from subprocess import PIPE, STDOUT, Popen

    with open(log, "w") as file:
        process = Popen(command, stdout=PIPE, stderr=STDOUT, universal_newlines=True)
        for line in process.stdout:
            file.write(line)
            shown(line)
        return process.wait()


def news(line):
    """What a line of pip's says to somebody who waits, in a few words; '' where it says nothing new."""
    verb, _, rest = line.strip().partition(" ")
    if verb in ("Collecting", "Building"):
        return "%s %s" % (verb, rest.split(" ")[0])
    if verb == "Downloading":
        return "%s %s" % (verb, " ".join(rest.split("/")[-1].split(" ")[:3]))
    return "Unpacking: this takes a while" if line.startswith("Installing collected") else ""


def pip(name, *words):
    """Install with uv, or else with pip, into this Python's environment, what `words` ask for: a line for the
    step, which on a terminal says what pip is at. 1 after its last lines where it fails."""
    log = os.path.join(sys.prefix, "install.log")
    live = sys.stdout.isatty() and not os.environ.get("CI")

    def shown(line):
        text = news(line)
        if live and text:
            sys.stdout.write("\r\033[K  %s" % text[:100])
            sys.stdout.flush()

    print("Installing %s (what is there already is kept; the first time takes some minutes) ..." % name)
    sys.stdout.flush()
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off"]
    if uv():
        command = [uv(), "pip", "install", "--no-progress", "--python", sys.executable]
    code = installed(command + list(words), log, shown)
    if live:
        sys.stdout.write("\r\033[K")
    if code == 0:
        return 0
    with open(log) as lines:
        print("".join(lines.readlines()[-40:]))
    print(
        "The installation did not finish (the reason stands above, all that was said in %s; %.1f GB are free"
        " on the disk). Nothing is lost: mend the reason, then type the same make command again."
        % (os.path.relpath(log, ROOT), free_gib())
    )
    return 1


def main(arguments):
    """0 where the installation can go on, else 1 after one sentence. Arguments: nothing | python |
    torch [VERSION] | install FILE."""
    step, wanted = (list(arguments) + ["", ""])[:2]
    if step == "install":
        return pip(os.path.basename(wanted), "-r", wanted)
    others = other_pythons() if sys.version_info >= (3, 3) else ()
    problem = python_problem(sys.version_info, others)
    if problem is None:
        import platform

        problem = mac_problem(sys.platform, platform.machine())
    if problem is None and step in ("python", "torch"):
        return torch(wanted or pinned_torch()) if step == "torch" else 0
    if problem is None:
        from importlib.util import find_spec

        problem = venv_problem([name for name in ("venv", "ensurepip") if find_spec(name)])
    if problem is None:
        problem = disk_problem(free_gib())
    if problem:
        print(problem)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, EOFError):
        sys.exit("\nStopped. Nothing is lost: the same make command goes on.")
