"""What a trace can answer: each question at yes, partly and no."""

import pandas as pd
import pytest

from c3prof.analysis.trust import CONTENTS, contents, trust, usable
from c3prof.errors import DataWarning
from c3prof.readers import load
from tests.kineto_files import annotation, document, kernel, launched, nccl, op, written

GOOD = {
    "rank": 0,
    "source": "r0.json",
    "world_size": 2,
    "device_name": "H200",
    "backend": "nccl",
    "span_ns": 10**9,
    "events": 1000,
    "events_lost": 0,
    "activities": 100,
    "streams": 2,
    "collectives": 10,
    "steps": 5,
    "comm_activities": 10,
    "comm_with_metadata": 10,
    "launched": 100,
    "shaped": 90,
    "grouped": 10,
    "tick_ns": 1,
    "median_ns": 10_000.0,
}
OVERLAP, COLLECTIVE, CAUSE, STEP, WAIT, SLOWDOWN, TIMES = (
    "how much communication is hidden",
    "which collective, group and size",
    "why communication is exposed",
    "what each step costs",
    "who waits for whom",
    "which kernels slow down under communication",
    "times of single kernels",
)


def files(**changes):
    return CONTENTS.frame(pd.DataFrame([{**GOOD, "rank": rank, **changes} for rank in (0, 1)]))


def answers(frame, warnings=()):
    return trust(frame, warnings).frame.set_index("question")["answer"].to_dict()


def test_a_good_recording_answers_everything():
    assert answers(files()) == dict.fromkeys((OVERLAP, COLLECTIVE, CAUSE, STEP, WAIT, SLOWDOWN, TIMES), "yes")


@pytest.mark.parametrize(
    ("changes", "question", "answer"),
    [
        ({"events_lost": 3}, OVERLAP, "partly"),
        ({"activities": 0, "collectives": 0}, OVERLAP, "no"),
        ({"activities": 0}, OVERLAP, "yes"),
        ({"activities": 0, "span_ns": 0}, OVERLAP, "no"),
        ({"collectives": 0}, COLLECTIVE, "no"),
        ({"grouped": 4}, COLLECTIVE, "partly"),
        ({"grouped": 0}, COLLECTIVE, "no"),
        ({"launched": 50}, CAUSE, "partly"),
        ({"launched": 0}, CAUSE, "no"),
        ({"activities": 0}, CAUSE, "no"),
        ({"steps": 0}, STEP, "no"),
        ({"world_size": 8}, WAIT, "partly"),
        ({"collectives": 0}, WAIT, "no"),
        ({"comm_activities": 0}, SLOWDOWN, "no"),
        ({"steps": 2}, SLOWDOWN, "partly"),
        ({"shaped": 0}, SLOWDOWN, "partly"),
        ({"tick_ns": 1000, "median_ns": 8000.0}, TIMES, "partly"),
        ({"median_ns": float("nan")}, TIMES, "no"),
    ],
)
def test_what_is_missing_changes_that_answer(changes, question, answer):
    assert answers(files(**changes))[question] == answer


def test_one_rank_cannot_tell_who_waits():
    assert answers(files().iloc[:1])[WAIT] == "no"


def test_a_warning_that_bears_on_numbers_is_no_plain_yes():
    assert answers(files(), [DataWarning("cut", "the file ends early")])[OVERLAP] == "partly"
    assert answers(files(), [DataWarning("missing-ranks", "…", bears_on_numbers=False)])[OVERLAP] == "yes"


def test_nothing_usable():
    nothing = files(activities=0, collectives=0, steps=0, launched=0, median_ns=float("nan"), comm_activities=0)
    assert not usable(trust(nothing, ()))
    assert usable(trust(files(), ()))


def test_contents_of_a_small_file(tmp_path):
    events = [annotation("ProfilerStep#1", 0, 100), op("aten::mm", 5, 15, **{"Input Dims": [[2, 2]]})]
    events += launched(kernel("gemm", 20, 30), 10) + launched(nccl("allreduce", 25, 45), 20) + [kernel("free", 50, 51, stream=9)]
    row = contents(load(written(tmp_path / "t.json", document(events, rank=3, world_size=8)))).frame.iloc[0].to_dict()
    expected = {
        "rank": 3,
        "source": "t.json",
        "world_size": 8,
        "span_ns": 31_000,
        "activities": 3,
        "streams": 3,
        "collectives": 1,
        "steps": 1,
    }
    expected |= {
        "comm_activities": 1,
        "comm_with_metadata": 1,
        "launched": 2,
        "shaped": 1,
        "grouped": 1,
        "events_lost": 0,
        "median_ns": 10_000,
    }
    assert {name: row[name] for name in expected} == expected
