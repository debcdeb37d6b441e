"""Is a sample visibly two samples? A split of the sorted values whose parts are far apart and tight."""

import numpy as np
import numpy.typing as npt

from c3prof.analysis.segments import FloatArray, Segments, ratio

_LEAST = 4
_APART = 0.1  # of the median: a smaller distance between the parts is no other problem size
_PART = 0.15  # of the sample: fewer are outliers
_EXPLAINED, _EXPLAINED_FEW = 0.90, 0.97  # of the variance, by the split; 0.64 for one normal, 0.75 for a uniform sample


def mixed(segments: Segments, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Which segments are mixtures of two: the best split explains 90 % of the variance (97 % below 6 values).

    Both parts hold at least 15 % (and two) of the values and their means lie at least 10 % of the median apart.
    With η = k(n − k)/n² · (m₂ − m₁)² / variance, the largest over the splits k.
    """
    label, median = segments.label, segments.medians(values)
    x = segments.ascending(values) - median[label]
    size, place = segments.sizes[label], segments.ordinals() + 1
    running = np.cumsum(x)
    before = np.append(0.0, running)[segments.starts]
    low_sum, total = running - before[label], segments.sums(x)[label]
    apart = ratio(total - low_sum, size - place) - low_sum / place
    variance = segments.means(x**2) - segments.means(x) ** 2
    explained = ratio(place * (size - place) / size**2 * apart**2, variance[label])
    enough = np.maximum(2, np.ceil(_PART * size))
    allowed = (place >= enough) & (size - place >= enough) & (size >= _LEAST) & (apart >= _APART * median[label])
    passed = allowed & (explained >= np.where(size < 6, _EXPLAINED_FEW, _EXPLAINED))
    return np.bincount(label[passed], minlength=segments.count) > 0
