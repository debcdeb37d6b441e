"""Clean samples from a second trace of the same program (evidence `baseline`)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from c3prof.analysis.samples import Samples


def with_baseline(samples: Samples, other: Samples, known_as: Mapping[int, int]) -> tuple[Samples, int]:
    """The samples of a device, and after them those of the baseline that have the same signature; and how many those are.

    known_as: signature code here by signature code of the baseline. Steps of the baseline are numbered behind.
    """
    code = np.full(len(other.marks) + 1, -1)
    code[list(known_as)] = list(known_as.values())
    there = np.flatnonzero(code[other.signature] >= 0)
    behind = int(samples.step.max(initial=0)) + 2 - int(other.step.min(initial=0))
    added = {
        "row": np.full(len(there), -1),
        "signature": code[other.signature[there]],
        "step": other.step[there] + behind,
        **{name: getattr(other, name)[there] for name in ("comm", "use", "duration", "shared", "phase", "after_wait")},
        "label": np.full(len(there), -1),
    }
    both = {name: np.concatenate([getattr(samples, name), values]) for name, values in added.items()}
    return replace(samples, **both), len(there)
