"""Figures from tables by hand: what is drawn is what the table says; nothing to draw is None; text stays text."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from c3prof.analysis.comparison import SCHEMAS as CHANGES
from c3prof.renderers import figures, figures_collectives, figures_comparison, figures_slowdown
from c3prof.renderers.findings import findings, key_numbers, scorecard_numbers
from c3prof.renderers.palette import CAUSES, CLASSES, COLLECTIVES, KERNEL_CLASSES, colour
from c3prof.table import Column, Report, Schema, Table

DRAWN = [
    figures.step_bars,
    figures.run_bar,
    figures.exposed_by_cause,
    figures.kernel_times,
    figures_slowdown.slowdown_ranking,
    figures_slowdown.interference_map,
    figures_slowdown.scorecard_bars,
    figures_slowdown.waves,
    figures_collectives.busbw_by_size,
    figures_collectives.time_by_kind,
    figures_collectives.rank_map,
    figures_collectives.straggler_bars,
]


def table(name, **columns):
    """A table of plain columns, for renderers that look at names only."""
    schema = Schema(name, name, tuple(Column(key, "object", "", key) for key in columns))
    return Table(schema, pd.DataFrame(columns))


def report(*tables):
    return Report({one.schema.name: one for one in tables})


def overlap(name="overlap", **more):
    base = {"rank": [0], "device": ["0"], "span_ns": [100e6], "compute_ns": [60e6], "comm_ns": [30e6], "hidden_ns": [20e6]}
    return table(name, **base, exposed_ns=[10e6], exposed_copy_ns=[5e6], idle_ns=[25e6], **more)


SLOW = {
    "rank": [0, 0],
    "kernel": ["void ns::gemm<float>(int)", "b"],
    "signature": ["1", "2"],
    "co_runner": ["comm:all_reduce", "copy"],
    "n_clean": [4, 5],
    "n_overlapped": [6, 7],
    "clean_ns": [100e3, 50e3],
    "slowdown": [1.5, np.nan],
    "slowdown_low": [1.4, np.nan],
    "slowdown_high": [1.7, np.nan],
    "interference": [True, False],
    "lost_ns": [200e3, np.nan],
}


@pytest.mark.parametrize("draw", DRAWN)
def test_nothing_to_draw_is_none(draw):
    assert draw(Report({})) is None


def test_the_parts_of_a_step_add_up_to_it():
    made = figures.step_bars(report(overlap("overlap_by_step", step=[3])))
    heights = {trace["name"]: trace["y"] for trace in made["data"]}
    assert heights == {
        "compute alone": [40.0],
        "hidden communication": [20.0],
        "exposed communication": [10.0],
        "exposed copy": [5.0],
        "idle": [25.0],
    }
    assert sum(values[0] for values in heights.values()) == 100


def test_without_steps_the_run_is_one_bar():
    made = figures.step_bars(report(overlap()))
    assert made["layout"]["xaxis"]["title"]["text"] == "run"
    assert len(made["data"][0]["x"]) == 1


def test_unknown_communication_is_not_drawn():
    one = overlap()
    one.frame[["comm_ns", "hidden_ns"]] = None
    names = [trace["name"] for trace in figures.step_bars(report(one))["data"]]
    assert "hidden communication" not in names


def test_ranking_shows_factor_interval_and_whether_it_is_sure():
    trace = figures_slowdown.slowdown_ranking(report(table("slowdown", **SLOW)))["data"][0]
    assert trace["x"] == [1.5]
    assert trace["error_x"]["array"] == [pytest.approx(0.2)]
    assert trace["error_x"]["arrayminus"] == [pytest.approx(0.1)]
    assert trace["marker"]["symbol"] == ["circle"]


def test_the_curve_is_the_rate_model():
    samples = pd.DataFrame({"duration_ns": [100e3, 130e3], "shared_ns": [0, 90e3], "clean": [True, False]})
    made = figures_slowdown.slowdown_samples(samples, {"clean_ns": 100e3, "slowdown": 1.5, "slowdown_low": 1.4, "slowdown_high": 1.6})
    line = next(trace for trace in made["data"] if trace["name"].startswith("slowdown"))
    at = dict(zip(np.round(line["x"], 3), line["y"], strict=True))
    assert at[0] == pytest.approx(100)
    assert at[1] == pytest.approx(150)
    #  F4: clean 100 µs; 130 µs of which 90 are shared lies on the curve of 1.5
    assert pytest.approx(130) == 100 / (1 - 90 / 130 * (1 - 1 / 1.5))


def test_the_fitted_bandwidth_is_the_line_through_its_points():
    size = np.array([1e6, 1e7, 1e8])
    algbw = size / (30_000 + size / 100)
    ledger = table(
        "collectives",
        rank=[0, 0, 0],
        collective=["all_reduce"] * 3,
        group=["0"] * 3,
        size_bytes=size,
        algbw_gb_s=algbw,
        busbw_gb_s=algbw * 1.75,
        lower_bound=[False] * 3,
    )
    fit = table("bandwidth_fit", collective=["all_reduce"], alpha_ns=[30_000.0], bandwidth_gb_s=[100.0])
    points, line = figures_collectives.busbw_by_size(report(ledger, fit))["data"]
    for x, y in zip(points["x"], points["y"], strict=True):
        assert np.interp(np.log(x), np.log(line["x"]), line["y"]) == pytest.approx(y, rel=0.01)


def test_a_map_of_a_thousand_ranks_is_bounded():
    n = 1_024 * 10
    rows = {"rank": np.repeat(np.arange(1_024), 10), "device": ["0"] * n, "step": list(range(10)) * 1_024, "exposed_ns": np.arange(n) * 1e3}
    made = figures_collectives.rank_map(report(table("overlap_by_step", **rows)))
    assert (len(made["data"][0]["z"]), len(made["data"][0]["z"][0])) == (1_024, 10)
    assert made["layout"]["height"] <= 760


def test_figures_of_many_ranks_and_collectives_stay_small():
    n = 4_096 * 100
    rows = {"rank": np.repeat(np.arange(4_096), 100), "device": ["0"] * n, "step": list(range(100)) * 4_096, "exposed_ns": np.ones(n) * 1e6}
    made = figures_collectives.rank_map(report(table("overlap_by_step", **rows)))
    assert len(made["data"][0]["z"]) * len(made["data"][0]["z"][0]) <= 200_000
    assert "of 100" in made["layout"]["xaxis"]["title"]["text"]
    kinds = ["all_reduce", "all_gather", "send", "recv"] * 5_000
    base = {"rank": [0] * 20_000, "collective": kinds, "group": ["0"] * 20_000, "lower_bound": [False] * 20_000}
    sizes = {"size_bytes": [1e6] * 20_000, "busbw_gb_s": [5.0] * 20_000, "algbw_gb_s": [5.0] * 20_000}
    made = figures_collectives.busbw_by_size(report(table("collectives", **base, **sizes)))
    assert sum(len(trace["x"]) for trace in made["data"]) <= figures.POINTS


HOSTILE = "<a href='javascript:alert(1)'>k</a><b>%{x}</b>"


def test_text_of_a_trace_is_never_markup():
    rows = SLOW | {"kernel": [HOSTILE] * 2, "co_runner": [HOSTILE] * 2}
    made = figures_slowdown.slowdown_ranking(report(table("slowdown", **rows)))
    assert "<a" not in str(made)
    times = table("kernels", rank=[0], by=["kernel"], kernel=[HOSTILE], kernel_class=[HOSTILE], total_ns=[5e6], **{"class": ["compute"]})
    made = figures.kernel_times(report(times))
    assert "<a" not in str(made)
    assert "%{x}</b>" not in str(made)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("void at::native::reduce_kernel<512, 1>(int)", "at::native::reduce_kernel"),
        ("void cutlass::Kernel<cutlass_80_gemm_align8>(T::Params)", "cutlass_80_gemm_align8"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -&gt; Device)"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        ("<odd", "&lt;odd"),
        ("", ""),
    ],
)
def test_labels_of_kernels(name, label):
    assert figures.short_kernel(name) == label


def test_findings_are_dearest_first_with_the_view_that_shows_them():
    exposed = table("exposed", by=["combination"] * 2, collective=["all_gather", None], cause=["dependency", "wait"], exposed_ns=[9e6, 1e6])
    late = table("stragglers", rank=[3, 5], caused_wait_ns=[4e6, 50e6])
    found = findings(report(overlap(), exposed, late, table("slowdown", **SLOW)), top=4)
    assert [(one.view, one.cost_ns) for one in found] == [("/ranks", 50e6), ("/tables", 25e6), ("/timeline", 9e6), ("/slowdown", 200e3)]
    assert "rank 5" in found[0].sentence
    assert "1.50× slower beside comm:all_reduce" in found[3].sentence
    assert findings(Report({})) == []


def test_numbers_on_top():
    labels = {label: value for label, value, _ in key_numbers(report(overlap()))}
    assert labels == {"exposed communication": "10.0 %", "of communication is hidden": "66.7 %", "idle": "25.0 %", "recorded": "100 ms"}
    score = table("c3", real_speedup=[1.231], real_speedup_low=[1.2], real_speedup_high=[1.3], realized_by_time=[None])
    assert scorecard_numbers(report(score)) == [("realized speed-up", "1.23×", "1.20× to 1.30×"), ("realized, by time", "–", "")]


def test_every_figure_is_one_that_plotly_accepts():
    changes = {name: ["x"] for name in CHANGES["change_by_part"].names} | {"change_ns": [2e6], "change_low": [1e6], "change_high": [3e6]}
    changes |= {"changed": [True]}
    made = [
        figures.step_bars(report(overlap("overlap_by_step", step=[3]))),
        figures.run_bar(report(overlap())),
        figures_slowdown.slowdown_ranking(report(table("slowdown", **SLOW))),
        figures_slowdown.interference_map(
            report(table("interference", kernel_class=["gemm", "norm"], co_runner=["copy"] * 2, slowdown=[1.2, None]))
        ),
        figures_slowdown.scorecard_bars(report(table("c3", serial_ns=[16e6], ideal_ns=[10e6], concurrent_ns=[13e6], ideal_speedup=[1.6]))),
        figures_comparison.change_bars(table("change_by_part", **changes)),
    ]
    for one in made:
        assert one is not None
        go.Figure(one)


def test_colours_are_told_apart():
    for palette in (CLASSES, KERNEL_CLASSES, COLLECTIVES, CAUSES):
        assert all(len(value) == 7 and int(value[1:], 16) >= 0 for value in palette.values())
    shown = [CLASSES[name] for name in ("compute", "comm", "fused", "copy", "hidden", "exposed", "idle")]
    assert len(set(shown)) == len(shown)
    assert len(set(KERNEL_CLASSES.values())) == len(KERNEL_CLASSES)
    assert colour("something new") == colour("something new")
