"""Flight recorder, NCCL Inspector and NCCL logs, from small files in their formats."""

import json
from pathlib import Path

import numpy as np
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.errors import UnreadableInput
from c3prof.readers import load
from c3prof.trace import NONE

T0 = 1_790_000_000_000_000_000


def _entry(seq: int, created_ms: float, duration_ms: float | None, name: str = "nccl:all_reduce", **more: object) -> dict[str, object]:
    """An entry as torch 2.6 to 2.13 writes it."""
    entry: dict[str, object] = {
        "frames": [],
        "record_id": seq,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": name,
        "time_created_ns": T0 + round(created_ms * 1e6),
        "input_sizes": [[256, 4096]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[256, 4096]],
        "output_dtypes": ["BFloat16"],
        "state": "completed",
        "retired": True,
        "timeout_ms": 600000,
        "is_p2p": False,
    }
    return entry | ({} if duration_ms is None else {"duration_ms": duration_ms}) | more


def _dump(folder: Path, rank: int, entries: list[dict[str, object]]) -> None:
    document = {
        "version": "2.10",
        "nccl_version": "2.28.9",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {"0": {"last_enqueued_collective": 2}},
        "entries": entries,
    }
    (folder / f"fr_rank_{rank}.json").write_text(json.dumps(document))


def test_two_ranks_of_the_flight_recorder_become_collectives_with_durations(tmp_path: Path) -> None:
    for rank in (0, 1):
        _dump(
            tmp_path, rank, [_entry(1, 10 + rank, 2.5), _entry(2, 20 + rank, 1.25, "nccl:_reduce_scatter_base", output_sizes=[[128, 4096]])]
        )
    run = load(tmp_path)
    assert run.rank_numbers == [0, 1]
    table = analyze(run, Settings(only=("collectives",)))["collectives"].frame
    assert list(table["rank"]) == [0, 0, 1, 1]
    assert list(table["collective"]) == ["all_reduce", "reduce_scatter"] * 2
    assert list(table["seq"]) == [1, 2, 1, 2]
    assert list(table["duration_ns"]) == [2_500_000, 1_250_000] * 2
    assert set(table["size_bytes"]) == {2 * 256 * 4096}
    assert set(table["evidence"]) == {"flight-recorder"}
    assert table["hidden_ns"].isna().all()  # nobody recorded what computed meanwhile
    assert set(run.groups["group_ranks"]) == {"[0,1]"}


def test_operations_without_duration_are_counted_and_not_invented(tmp_path: Path) -> None:
    _dump(tmp_path, 0, [_entry(1, 10, None), _entry(2, 20, 1.0), {"state": "scheduled"}])
    run = load(tmp_path)
    assert list(run.collectives["seq"]) == [2]
    assert list(run.recorded_collectives["end_ns"] == NONE) == [True, False]
    codes = {warning.code: warning.count for warning in run.warnings}
    assert codes["no-duration"] == 1
    assert codes["bad-entry"] == 1


@pytest.mark.parametrize(
    "broken",
    [{"time_created_ns": 10**30}, {"input_sizes": [["x"]]}, {"collective_seq_id": "one"}, {"process_group": 5}, {"duration_ms": {}}],
    ids=lambda broken: next(iter(broken)),
)
def test_an_entry_with_a_value_that_cannot_be_is_left_out_and_counted(tmp_path: Path, broken: dict[str, object]) -> None:
    _dump(tmp_path, 0, [_entry(1, 10, 1.0) | broken, _entry(2, 20, 1.0)])
    run = load(tmp_path)
    assert list(run.collectives["seq"]) == [2]
    assert {warning.code: warning.count for warning in run.warnings}["bad-entry"] == 1


def test_sends_and_receives_name_their_peer(tmp_path: Path) -> None:
    _dump(tmp_path, 0, [_entry(0, 5, 1.0, "nccl:send 0->1", is_p2p=True, p2p_seq_id=4, process_group=["pp", "pipeline"])])
    row = load(tmp_path).collectives.iloc[0]
    assert (row["collective"], row["peer"], row["seq"], row["group"], row["group_desc"]) == ("send", 1, 4, "pp", "pipeline")


def test_a_cut_dump_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "fr_rank_0.json").write_text('{"nccl_version": "2.28.9", "entries": [{"collective_seq_id": 1')
    with pytest.raises(UnreadableInput, match=r"fr_rank_0\.json"):
        load(tmp_path / "fr_rank_0.json")


def test_inspector_lines(tmp_path: Path) -> None:
    def line(seq: int, us: float) -> str:
        return json.dumps(
            {
                "header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
                "metadata": {
                    "inspector_output_format_version": "v4.0",
                    "dump_timestamp_us": 1_790_000_000_000_000 + seq * 1000,
                    "hostname": "node7",
                    "pid": 1,
                },
                "coll_perf": {
                    "coll": "ReduceScatter",
                    "coll_sn": seq,
                    "coll_msg_size_bytes": 1 << 20,
                    "coll_exec_time_us": us,
                    "coll_algobw_gbs": 1.0,
                },
            }
        )

    (tmp_path / "inspector.log").write_text("\n".join([line(7, 100), "{broken", line(8, 120.5)]) + "\n")
    run = load(tmp_path / "inspector.log")
    assert run.rank_numbers == [2]
    assert list(run.collectives["collective"]) == ["reduce_scatter"] * 2
    assert list(run.collectives["end_ns"] - run.collectives["start_ns"]) == [100_000, 120_500]
    assert list(run.collectives["seq"]) == [7, 8]
    assert list(run.collectives["size_bytes"]) == [1 << 20] * 2
    assert run.ranks["host"].iloc[0] == "node7"
    assert [warning.count for warning in run.warnings if warning.code == "bad-line"] == [1]


LOG = """\
node7:4242:4242 [0] NCCL INFO cudaDriverVersion 12080
node7:4242:4300 [0] NCCL INFO comm 0x55d0c0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9f - Init START
node7:4243:4301 [1] NCCL INFO comm 0x55d0c1 rank 1 nRanks 2 nNodes 1 localRanks 2 localRank 1 - Init COMPLETE
node7:4242:4300 [0] NCCL INFO Channel 00/24 : 0 1
node7:4242:4300 [0] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer
node7:4243:4301 [1] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer
node7:4242:4242 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}
node7:4242:4242 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}
node7:4242:4242 [0] NCCL INFO AllGather: 1024 Bytes -> Algo 1 proto 0 time 13.2
"""


def test_choices_of_nccl_from_its_log(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("torchrun says hello\n" + LOG)
    run = load(tmp_path / "nccl.log")
    table = analyze(run, Settings(only=("nccl_choices",)))["nccl_choices"].frame
    found = table.replace({np.nan: None}).to_dict("records")
    assert found == [
        {"rank": 0, "collective": "all_reduce", "size_bytes": 4194304, "algorithm": "RING", "protocol": "SIMPLE", "channels": 16, "n": 2},
        {"rank": 0, "collective": "all_gather", "size_bytes": 1024, "algorithm": "RING", "protocol": "LL", "channels": 24, "n": 1},
        {"rank": 1, "collective": None, "size_bytes": -1, "algorithm": None, "protocol": None, "channels": 24, "n": 0},
    ]


def test_a_log_without_choices_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("node7:1:1 [0] NCCL INFO cudaDriverVersion 12080\n")
    with pytest.raises(UnreadableInput, match="NCCL_DEBUG_SUBSYS"):
        load(tmp_path / "nccl.log")


def test_beside_traces_such_files_are_left_out_and_named(tmp_path: Path) -> None:
    trace = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}
    (tmp_path / "rank0.json").write_text(json.dumps(trace))
    _dump(tmp_path, 0, [_entry(1, 10, 2.5)])
    run = load(tmp_path)
    assert list(run.ranks["path"]) == ["rank0.json"]
    assert [warning.path for warning in run.warnings if "communication alone" in warning.message] == ["fr_rank_0.json"]
