"""Why nothing runs, by hand: every instant of a gap has one cause."""

from c3prof.analysis.idle import idle
from c3prof.analysis.settings import Settings
from tests.builders import Item, call, compute, op, step, trace


def causes(*items: Item, stream: int | None = None) -> dict[str, int]:
    frame = idle(trace(*items), {}, Settings())[0].frame
    chosen = frame["stream"].isna() if stream is None else frame["stream"] == stream
    return dict(zip(frame["cause"][chosen], frame["idle_ns"][chosen].tolist(), strict=True))


# Launch latency 10, measured on streams that were found idle.
LATENCY = [compute(10, 20, launched=0, stream=30), compute(20, 30, launched=10, stream=31), compute(30, 40, launched=20, stream=32)]


def test_the_cpu_was_late_and_did_something_else() -> None:
    # gap 40--------100; enqueued at 90, starts 10 later as launches do
    assert causes(*LATENCY, compute(100, 110, launched=90)) == {"host": 49, "launch-bound": 11}  # the call itself: 89-90


def test_the_cpu_sat_in_a_synchronize_call() -> None:
    assert causes(*LATENCY, compute(100, 110, launched=90), call(30, 60)) == {"host": 29, "host-sync": 20, "launch-bound": 11}


def test_the_cpu_was_busy_launching() -> None:
    items = [*LATENCY, compute(100, 110, launched=90), op(35, 95, "aten::mm")]
    assert causes(*items) == {"launch-bound": 60}
    assert causes(*items, call(50, 60)) == {"launch-bound": 50, "host-sync": 10}


def test_a_gap_between_kernels_that_were_enqueued_long_ago() -> None:
    assert causes(*LATENCY, compute(45, 50, launched=25)) == {"kernel-gap": 5}


def test_a_stream_waits_for_another_stream_or_has_no_work() -> None:
    items = [compute(0, 10, stream=7, launched=-20), compute(10, 50, stream=8, launched=-10), compute(60, 70, stream=7, launched=30)]
    # stream 7: gap 10--60. Not enqueued until 30 while stream 8 runs; latency is 20, so it could have started at 50; then nothing runs.
    assert causes(*items, stream=7) == {"no-work": 20, "launch-bound": 20, "kernel-gap": 10}
    assert causes(*items, compute(58, 59, stream=9, launched=38), stream=7) == {
        "no-work": 20,
        "launch-bound": 20,
        "kernel-gap": 9,
        "other-stream": 1,
    }


def test_unknown_without_launches_and_in_graph_replays() -> None:
    assert causes(compute(0, 10), compute(15, 20)) == {"unknown": 5}
    assert causes(*LATENCY, compute(50, 60, launched=45, graph=1)) == {"unknown": 10}


def test_counts_and_the_steps_asked_for() -> None:
    run = trace(
        compute(0, 10, step=1), compute(15, 20, step=1), compute(26, 30, step=2), compute(31, 40, step=2), step(1, 0, 1), step(2, 1, 2)
    )
    whole, second = (idle(run, {}, Settings(steps=steps))[0].frame for steps in (None, (2, 2)))
    assert whole[["stream", "gaps", "idle_ns"]].to_numpy().tolist() == [[None, 3, 12], [7, 3, 12]]
    assert second[["stream", "gaps", "idle_ns"]].to_numpy().tolist() == [[None, 1, 1], [7, 1, 1]]
