"""Lanes and views of a small run by hand, and the bounds of a view on a large one."""

import json
from base64 import b64decode

import numpy as np
import pytest

from benchmarks.large_trace import large_trace
from c3prof.app.lanes import CLASSES
from c3prof.app.timeline import RECTANGLES, Timeline

ARRAYS = {"start": "<f4", "stop": "<f4", "cls": "u1", "share": "u1", "count": "<i4", "row": "<i4", "name": "<i4"}


def decoded(view):
    return {name: np.frombuffer(b64decode(view[name]), dtype) for name, dtype in ARRAYS.items()}


def shown(timeline, key, begin, end, width=1_000):
    """(class, start, end, name) of the rectangles of a lane, times in ns after the start of the timeline."""
    view = timeline.view([key], begin, end, width)
    arrays = decoded(view)
    names = [view["names"][code] if code >= 0 else None for code in arrays["name"]]
    starts, stops = (arrays[name] + view["begin"] for name in ("start", "stop"))
    classes = [CLASSES[code] for code in arrays["cls"]]
    return list(zip(classes, starts.astype(int).tolist(), stops.astype(int).tolist(), names, strict=True))


def test_lanes_stand_under_their_rank_device_and_thread(timeline):
    first = [(lane.section, lane.label) for lane in timeline.lanes.values() if lane.rank == 0]
    assert first[:4] == [("", "steps"), ("device 0", "communication"), ("device 0", "stream 7"), ("device 0", "stream 20")]
    assert {label for section, label in first if section.startswith("thread")} >= {"launches", "operators"}
    assert [lane.rank for lane in timeline.lanes.values()] == sorted(lane.rank for lane in timeline.lanes.values())


def test_a_lane_shows_its_spans_with_class_and_name(timeline):
    rows = shown(timeline, "r0/d0/s20", 0, 100_000)
    assert rows == [("comm", 30_000, 70_000, "ncclDevKernel_allreduce_RING_LL")]


def test_communication_is_cut_into_hidden_and_exposed(timeline):
    #  gemm 10-50, all_reduce 30-70: hidden 30-50, exposed 50-70
    assert shown(timeline, "r0/d0/overlap", 0, 100_000) == [("hidden", 30_000, 50_000, None), ("exposed", 50_000, 70_000, None)]


def test_what_is_narrower_than_a_pixel_is_merged_with_its_share(timeline):
    view = timeline.view(["r0/d0/s7"], 0, 1e12, 100)
    arrays = decoded(view)
    assert arrays["row"].tolist() == [-1]
    assert arrays["count"].tolist() == [4]
    assert [CLASSES[code] for code in arrays["cls"]] == ["compute"]


def test_steps_and_extent_are_told_at_first(timeline):
    told = timeline.structure()
    assert [(s["rank"], s["step"], s["end"] - s["begin"]) for s in told["steps"]] == [(0, 0, 95_000), (0, 1, 95_000)]
    assert told["begin"] == 0
    assert json.dumps(told)


def test_a_search_walks_from_hit_to_hit_and_wraps(timeline):
    keys = ["r0/d0/s7", "r1/d0/s7"]
    begins, at = [], -1.0
    for _ in range(5):
        found = timeline.hits("GEMM", keys, at)
        assert found["count"] == 4
        begins.append(found["hit"]["begin"])
        at = found["hit"]["begin"]
    assert begins == [10_000, 110_000, 10_000, 110_000, 10_000]
    back = timeline.hits("gemm", keys, 110_000, backwards=True)
    assert back["hit"]["begin"] == 10_000


def test_no_hit_is_no_hit(timeline):
    assert timeline.hits("nothing of the kind", list(timeline.lanes)) == {"count": 0, "hit": None, "position": 0}
    assert timeline.hits("", list(timeline.lanes))["count"] == 0


@pytest.mark.parametrize(("begin", "end", "width"), [(5, 5, 0), (9, 1, -3), (-1e300, 1e300, 10**9), (0, 1e-3, 1)])
def test_an_odd_window_is_answered(timeline, begin, end, width):
    assert timeline.view([*timeline.lanes, "no such lane"], begin, end, width)["unit"] >= 1


@pytest.fixture(scope="module")
def large():
    return Timeline.of(large_trace(200_000, ranks=8))


@pytest.mark.parametrize("share", [1, 0.3, 0.03, 0.003, 0.0003])
def test_a_view_is_a_few_thousand_rectangles_however_many_events(large, share):
    length = (large.end - large.begin) * share
    view = large.view(list(large.lanes), length, 2 * length, 1_600)
    assert sum(view["counts"]) <= RECTANGLES
    assert len(json.dumps(view)) < 1_000_000


def test_a_view_of_everything_counts_every_event(large):
    view = large.view(list(large.lanes), 0, large.end - large.begin, 1_600)
    arrays, first = decoded(view), 0
    for key, count in zip(view["lanes"], view["counts"], strict=True):
        assert arrays["count"][first : first + count].sum() == len(large.lanes[key])
        first += count


def test_busy_share_is_that_of_the_spans(large):
    lane = large.lanes["r0/d0/s7"]
    view = large.view([lane.key], 0, large.end - large.begin, 800)
    arrays = decoded(view)
    drawn = ((arrays["stop"] - arrays["start"]) * arrays["share"] / 255).sum()
    busy = (lane.pyramid.spans.end - lane.pyramid.spans.start).sum()
    assert drawn == pytest.approx(busy, rel=0.01)
