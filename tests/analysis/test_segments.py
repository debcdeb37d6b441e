"""Segments against numpy, label by label; few and many values of a label take different ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c3prof.analysis import segments as module
from c3prof.analysis.segments import Segments


@pytest.mark.parametrize("many", [3, 16])
@given(groups=st.lists(st.lists(st.integers(-5, 5), max_size=8), min_size=1, max_size=6))
def test_sorted_values_medians_and_distinct_values_of_each_label(many: int, groups: list[list[int]]) -> None:
    segments = Segments(np.repeat(np.arange(len(groups)), [len(group) for group in groups]), len(groups))
    values = np.array([value for group in groups for value in group], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MANY", many)
        assert segments.ascending(values).tolist() == [value for group in groups for value in sorted(group)]
        medians = [np.median(group) if group else np.nan for group in groups]
        np.testing.assert_array_equal(segments.medians(values), medians)
        assert segments.distinct(values).tolist() == [len(set(group)) for group in groups]
    assert values.tolist() == [value for group in groups for value in group]
