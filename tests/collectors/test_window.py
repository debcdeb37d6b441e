"""Schedules are pure functions of the step: the same on every rank, checked by hand and by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c3prof.collectors.window import Calibration, Plan, Window, ranks_of
from c3prof.errors import WrongSettings


def _places(window: Window | Plan, steps: int) -> str:
    return "".join({"wait": ".", "warmup": "w", "active": "A", "over": "-"}[window.place(step)[1]] for step in range(steps))


def test_windows_recur_and_end() -> None:
    assert _places(Window(wait=2, warmup=1, active=3, repeat=2), 14) == "..wAAA..wAAA--"
    assert _places(Window(wait=0, warmup=0, active=1, repeat=0), 4) == "AAAA"


def test_numbers_count_windows() -> None:
    window = Window(wait=1, warmup=1, active=1, repeat=2)
    assert [window.place(step)[0] for step in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"repeat": -1}, {"warmup": 1.5}])
def test_a_number_out_of_range_is_named(wrong: dict[str, int]) -> None:
    with pytest.raises(WrongSettings, match=next(iter(wrong))):
        Window(**wrong)


def test_phases_of_three() -> None:
    phases = [Calibration(3).phase(step)[0] for step in range(15)]
    assert "".join(phases) == "dssscccdssscccd"


@given(st.integers(3, 20), st.integers(0, 10_000))
def test_every_period_has_as_many_steps_of_each_phase(steps: int, period: int) -> None:
    calibration = Calibration(steps)
    phases = [calibration.phase(period * calibration.period + place) for place in range(calibration.period)]
    assert phases == ["discarded"] + ["serialized"] * steps + ["concurrent"] * steps


@given(st.integers(3, 20))
def test_the_windows_it_proposes_fit(steps: int) -> None:
    calibration = Calibration(steps)
    window = calibration.window()
    calibration.fits(window)
    active = [step for step in range(2 * window.period) if window.place(step)[1] == "active"]
    assert calibration.phase(active[0]) == "discarded"
    assert len(active) == 2 * calibration.period


def test_a_window_that_misses_a_phase_is_refused_with_the_numbers_to_use() -> None:
    with pytest.raises(WrongSettings, match=r"use Window\(wait=6, warmup=1, active=7, repeat=2\)"):
        Calibration(3).fits(Window(wait=5, warmup=1, active=3, repeat=2))


@pytest.mark.parametrize("steps", [2, 0, -1, 2.5])
def test_too_few_calibration_steps_are_refused(steps: int) -> None:
    with pytest.raises(WrongSettings, match="at least 3"):
        Calibration(steps)


def test_an_extra_window_stands_beside_the_recurring_ones() -> None:
    plan = Plan(Window(wait=1, warmup=1, active=2, repeat=1))
    plan.add(8)
    assert _places(plan, 12) == ".wAA---wAA--"
    assert plan.place(8) == (Plan.EXTRA, "active")


def test_an_extra_window_of_calibration_begins_at_a_period() -> None:
    plan = Plan(None, Calibration(3))
    assert plan.boundary(8) == 14
    plan.add(14)
    assert _places(plan, 22) == "." * 13 + "w" + "A" * 7 + "."


@pytest.mark.parametrize(("text", "ranks"), [("0-2,7", {0, 1, 2, 7}), ("5", {5}), (" 1 - 2 ", {1, 2})])
def test_ranks(text: str, ranks: set[int]) -> None:
    assert ranks_of(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2"])
def test_what_is_no_list_of_ranks_is_said(text: str) -> None:
    with pytest.raises(WrongSettings, match="ranks="):
        ranks_of(text)
