"""What installs: one top-level package with every room in it, and nothing heavy at start-up."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def rooms() -> set[str]:
    """Packages by where they lie: folders with an __init__.py in c3prof/ and in the rooms at the top."""
    inside = {p.parent for p in (ROOT / "c3prof").glob("*/__init__.py") if not p.parent.is_symlink()}
    linked = {p for p in (ROOT / "c3prof").iterdir() if p.is_symlink() and (p / "__init__.py").exists()}
    return {"c3prof", *(f"c3prof.{folder.name}" for folder in inside | linked)}


def test_the_list_of_packages_is_the_folders():
    assert set(SETTINGS["tool"]["setuptools"]["packages"]) == rooms()


def test_every_room_at_the_top_is_linked_and_mapped():
    mapped = {room: folder for room, folder in SETTINGS["tool"]["setuptools"]["package-dir"].items() if room != "c3prof"}
    for room, folder in mapped.items():
        link = ROOT / "c3prof" / room.removeprefix("c3prof.")
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("setuptools", reason="building the wheel needs setuptools")
    out, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source") / "c3prof"
    left_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "runs", "__pycache__", "docs")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)  # building in place would leave folders behind
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_the_wheel_installs_one_top_level_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"c3prof"}
    for room in rooms():
        assert f"{room.replace('.', '/')}/__init__.py" in names
    for data in ("c3prof/kernel_rules.toml", "c3prof/py.typed", "c3prof/sample_traces/ddp.truth.json"):
        assert data in names


HEAVY = {"numpy", "pandas", "pyarrow", "torch", "dash", "plotly", "msgspec", "isal", "fsspec", "dask", "distributed"}


@pytest.mark.parametrize(
    "code",
    [
        "import c3prof",
        "import c3prof.records",
        "import c3prof.cli",
        "import c3prof.cli\nsys.argv = ['c3prof', '--help']\ntry: c3prof.cli.main()\nexcept SystemExit: pass",
    ],
)
def test_start_up_loads_nothing_heavy(code):
    program = f"import sys\n{code}\nprint('LOADED', *sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name.split(".")[0] for name in done.stdout.split("LOADED", 1)[1].split()}
    assert not loaded & HEAVY


def test_collectors_load_no_pandas():
    pytest.importorskip("torch")
    program = "import sys, c3prof.collectors; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"pandas", "dash", "plotly", "rich", "typer"} & set(done.stdout.split())
