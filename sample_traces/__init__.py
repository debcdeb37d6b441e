"""Small runs with a story, shipped with the package: `c3prof analyze --sample ddp`. make.py makes them."""

from pathlib import Path

from c3prof.errors import WrongSettings

SAMPLES = ("ddp", "fsdp", "straggler", "tp_ep")


def path_of(name: str) -> str:
    """The folder of a sample run. WrongSettings names the samples there are when this is none."""
    if name not in SAMPLES:
        raise WrongSettings(f"no sample is named {name!r}; there are {', '.join(SAMPLES)}")
    return str(Path(__file__).parent / name)
