"""Real runs on gloo: what is recorded of each kind of parallelism. Structure, counts and bytes; never wall-clock ratios."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.trace import NONE, Trace

pytest.importorskip("torch", reason="real ranks need torch")

from tests.real import jobs  # torch decides first whether there is anything to run

Traces = Callable[..., Trace]

PROGRAMS = ["ddp", "fsdp2", "fsdp2_async", "tensor_parallel", "pipeline", "every_collective"]


def records(trace: Trace, **where: object) -> pd.DataFrame:
    frame = trace.recorded_collectives
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_span_of_gloo_has_a_record(trace: Traces, program: str) -> None:
    run = trace(program)
    spans = run.collectives
    assert len(spans)
    assert spans["group"].notna().all()
    assert (spans["size_bytes"] > 0).all()
    collective = ~spans["collective"].isin(["send", "recv"])
    assert (spans["seq"][collective] != NONE).all()
    assert not spans.duplicated(["rank", "collective", "group", "seq", "peer"]).any()


@pytest.mark.parametrize("program", PROGRAMS)
def test_spans_and_records_agree_on_time(trace: Traces, program: str) -> None:
    run = trace(program)
    keys = ["rank", "collective", "group", "seq", "peer"]
    spans, calls = (frame.assign(**{k: frame[k].astype(object) for k in keys}) for frame in (run.collectives, run.recorded_collectives))
    both = spans.merge(calls, on=keys, suffixes=("", "_call"))
    assert len(both) == len(spans)
    assert (both["start_ns"] >= both["start_ns_call"] - 100_000).all()  # no span before its own call
    ended = both["end_ns_call"] >= 0
    assert (both["start_ns"][ended] <= both["end_ns_call"][ended] + 100_000).all()  # and it began before its end was told


@pytest.mark.parametrize("program", ["ddp", "fsdp2", "tensor_parallel", "every_collective"])
def test_the_same_sequence_on_every_rank(trace: Traces, program: str) -> None:
    run = trace(program)
    first, second = (
        [*zip(r["group"], r["seq"], r["collective"], r["size_bytes"], strict=True)] for r in (records(run, rank=0), records(run, rank=1))
    )
    assert first == second
    assert [seq for _, seq, _, _ in first] == list(range(len(first)))


def test_ddp_sends_its_gradients_once_a_step(trace: Traces) -> None:
    run = trace("ddp")
    parameters = jobs.LAYERS * (jobs.WIDTH * jobs.WIDTH + jobs.WIDTH)
    reduced = records(run, rank=0, collective="all_reduce").groupby("step")["size_bytes"].sum()
    assert (reduced == 4 * parameters).all()
    assert len(reduced) == jobs.STEPS


def test_fsdp2_waits_at_once_unless_told_otherwise(trace: Traces) -> None:
    plain = analyze(trace("fsdp2"), Settings(only=("waits", "overlap")))
    gathers = plain["waits"].frame.query("collective == 'all_gather'")
    assert (gathers["n_at_once"] == gathers["n"]).all()
    assert gathers["note"].str.contains("no overlap was possible").all()
    assert (plain["overlap"].frame["hidden_ns"] == 0).all()
    asynchronous = analyze(trace("fsdp2_async"), Settings(only=("waits", "overlap")))
    assert (asynchronous["overlap"].frame["hidden_ns"] > 0).all()
    gathers = asynchronous["waits"].frame.query("collective == 'all_gather'")
    assert (gathers["n_at_once"] < gathers["n"]).all()


def test_fsdp2_gathers_every_layer(trace: Traces) -> None:
    run = trace("fsdp2")
    layer = 4 * (jobs.WIDTH * jobs.WIDTH + jobs.WIDTH)
    gathered = records(run, rank=0, collective="all_gather")
    assert set(gathered["size_bytes"]) == {layer}
    scattered = records(run, rank=0, collective="reduce_scatter").groupby("step").size()
    assert (scattered == jobs.LAYERS).all()
    assert (run.collectives["collective"] == "reduce_scatter").sum() == 2 * 2 * jobs.LAYERS  # shown by gloo as all_reduce


def test_tensor_parallel_shows_no_false_overlap(trace: Traces) -> None:
    """DTensor's operators enclose the collective and its wait; only innermost operators compute."""
    run = trace("tensor_parallel")
    overlap = analyze(run, Settings(only=("overlap",)))["overlap"].frame
    assert (overlap["hidden_ratio"] < 0.25).all()
    calls = records(run, rank=0, collective="all_reduce")
    assert (calls["wait_start_ns"] != NONE).all()  # functional waits are seen
    assert (calls["blocked_ns"] > 0).all()


def test_pipeline_sends_and_receives_in_pairs(trace: Traces) -> None:
    run = trace("pipeline")
    kinds = Counter((r, kind) for r, kind in zip(run.recorded_collectives["rank"], run.recorded_collectives["collective"], strict=True))
    per_step = 4  # microbatches: activations forward, gradients back
    assert kinds[0, "send"] == kinds[1, "recv"] == kinds[0, "recv"] == kinds[1, "send"] == per_step * jobs.STEPS
    sent, received = records(run, rank=0, collective="send"), records(run, rank=1, collective="recv")
    assert set(sent["peer"]) == {1}
    assert set(received["peer"]) == {0}
    assert list(sent["size_bytes"]) == list(received["size_bytes"])
    assert set(sent["size_bytes"]) == {4 * jobs.BATCH // 4 * jobs.WIDTH}
    assert list(sent["seq"]) == list(received["seq"]) == list(range(len(sent)))


@pytest.mark.parametrize("ranks", [2, 4])
def test_bytes_and_order_of_every_collective(trace: Traces, ranks: int) -> None:
    run = trace("every_collective", ranks)
    for rank in range(ranks):
        for step in range(jobs.STEPS):
            calls = records(run, rank=rank, step=step)
            seen = [*zip(calls["collective"], calls["in_elements"], calls["out_elements"], calls["dtype"], strict=True)]
            item = {"float32": 4, "bfloat16": 2}
            assert [(kind, inputs * item[dtype], outputs * item[dtype]) for kind, inputs, outputs, dtype in seen] == jobs.expected(ranks)
    assert set(run.collectives["rank"]) == set(range(ranks))
    assert (run.collectives["seq"] != NONE).all()


def test_groups_keep_their_own_sequence(trace: Traces) -> None:
    run = trace("two_groups", 4)
    calls = run.recorded_collectives
    ring = calls["collective"].isin(["send", "recv"])
    for (rank, _group), part in calls[~ring].groupby(["rank", "group"], observed=True):
        assert list(part["seq"]) == list(range(len(part))), rank
    whole = {rank: [*zip(part["seq"], part["size_bytes"], strict=True)] for rank, part in calls[calls["group_size"] == 4].groupby("rank")}
    assert whole[0] == whole[1] == whole[2] == whole[3]
    pairs = calls[calls["group_size"] == 2]
    assert {tuple(sorted(set(part["rank"]))) for _, part in pairs.groupby("group_ranks", observed=True)} == {(0, 1), (2, 3)}
    spans = run.collectives[~run.collectives["collective"].isin(["send", "recv", "barrier"])]
    per_group = spans.groupby(["rank", "group_size"]).size()
    assert set(per_group) == {2 * 3}  # two recorded steps, three collectives each
    assert set(spans["size_bytes"]) == {4 * 1000 * n for n in range(1, 7)}
    of_pairs = spans[spans["group_size"] == 2]
    assert set(of_pairs["size_bytes"]) == {8000, 16000, 24000}  # the join kept the two groups apart


def _compiles() -> bool:
    compiler = shutil.which(os.environ.get("CXX") or "g++")
    return compiler is not None and subprocess.run([compiler, "--version"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _compiles(), reason="torch.compile on a CPU needs a C++ compiler")
def test_a_compiled_step_is_seen(trace: Traces) -> None:
    run = trace("compiled")
    calls = records(run, rank=0, collective="all_reduce")
    assert list(calls.groupby("step").size()) == [1] * jobs.STEPS
    assert (calls["size_bytes"] == 4 * 128 * 128).all()
    assert (calls["wait_start_ns"] != NONE).all()


def test_steps_are_timed_with_their_own_cpu_time(trace: Traces) -> None:
    steps = trace("ddp").recorded_steps
    assert list(steps["step"]) == [*range(jobs.STEPS)] * 2
    assert (steps["cpu_ns"] > 0).all()
    assert (steps["cpu_ns"] <= steps["end_ns"] - steps["start_ns"]).all()
    assert list(steps["window"][: jobs.STEPS]) == [NONE, NONE, NONE, 0, 0, NONE]
    starts, ends = steps["start_ns"].to_numpy()[: jobs.STEPS], steps["end_ns"].to_numpy()[: jobs.STEPS]
    assert (starts[1:] >= ends[:-1]).all()
    assert np.array_equal(trace("ddp").steps["step"], [3, 4, 3, 4])
