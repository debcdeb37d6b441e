"""Fixtures that all rooms' tests share."""

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
