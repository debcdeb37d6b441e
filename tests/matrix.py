"""The suite without torch on every Python from 3.10 to 3.13 that is found, and once with the lowest versions allowed.

    python tests/matrix.py [pytest arguments]

Each run has an environment of its own below .venv-matrix; the last lines say what ran and how it ended.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SETTINGS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def interpreter(version: str) -> str | None:
    """The command of a Python version, if it is there and starts: on the PATH or among pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [shutil.which(f"python{version}"), shutil.which("python3"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for path in (candidate for candidate in candidates if candidate):
        told = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=False
        )
        if told.returncode == 0 and told.stdout.strip() == version:
            return path
    return None


def lowest() -> list[str]:
    """The lower bounds of the package's own requirements and of the extras that the suite uses, as exact versions."""
    block = SETTINGS.split("dependencies = [", 1)[1].split("\n]", 1)[0]
    extras = re.findall(r"^(?:app|cluster) = \[(.*)\]$", SETTINGS, re.MULTILINE)
    return [f"{name}=={version}" for name, version in re.findall(r'"([\w-]+)>=([\d.]+)', "\n".join([block, *extras]))]


def ran(name: str, python: str, pins: list[str], arguments: list[str]) -> bool:
    """Whether the suite passed in a fresh environment."""
    folder = ROOT / ".venv-matrix" / name
    inside = str(folder / "bin" / "python")
    install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = folder / "constraints.txt"
    steps = [
        [python, "-m", "venv", "--clear", str(folder)],
        [*install, "--upgrade", "pip", "setuptools"],
        [
            *install,
            "-c",
            str(pinned),
            f"{ROOT}[app,cluster]",
            "hypothesis",
            "pytest",
            "pytest-timeout",
            "nbclient",
            "nbformat",
            "ipykernel",
        ],
        [inside, "-m", "pytest", "-q", "-m", "not browser and not gpu", *arguments],
    ]
    for step in steps:
        print("+", " ".join(step), flush=True)
        done = subprocess.run(step, cwd=ROOT, check=False)
        if done.returncode:
            return False
        pinned.write_text("\n".join(pins), encoding="utf-8")
    return True


def main(arguments: list[str]) -> int:
    found = {version: path for version in PYTHONS if (path := interpreter(version))}
    results = {f"Python {version}": ran(version, path, [], arguments) for version, path in found.items()}
    if found:
        version, path = next(iter(found.items()))
        results[f"Python {version}, lowest versions"] = ran("lowest", path, lowest(), arguments)
    for name in (f"Python {version}" for version in PYTHONS if version not in found):
        print(f"{name}: not found, not run")
    for name, passed in results.items():
        print(f"{name}: {'passed' if passed else 'FAILED'}")
    return 0 if results and all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
