"""Fixtures that all rooms' tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: how long an example takes says more about the neighbours on the machine than about the code.
settings.register_profile("c3prof", deadline=None, derandomize=True)
settings.load_profile("c3prof")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of real traces beside the repository; skips where it is absent."""
    folder = ROOT.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip(f"real traces are not at {folder}")
    return folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings and no cache of the machine; the current folder is empty."""
    for name in [name for name in os.environ if name.startswith("C3PROF")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("C3PROF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
