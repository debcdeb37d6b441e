"""The values of the real traces, exactly, by an independent reference."""

import math
from pathlib import Path

import pytest

from c3prof.analysis.overlap import overlap
from c3prof.analysis.settings import Settings
from c3prof.readers import load

COLUMNS = ["device", "span_ns", "compute_ns", "comm_ns", "copy_ns", "hidden_ns", "exposed_ns", "idle_ns"]

EXPECTED = {
    "a100_ddp_nccl_args_rank0of2": [0, 660551005, 115655847, 46876493, 2653498, 7317025, 39559468, 503050991],
    "a100_ddp_rank3of8": [3, 464594000, 281336000, 163535000, 54638000, 75614000, 87921000, 76007000],
    "b200_symm_mem_rank0of8": [0, 84487178, 8652137, 2141501, 802844, 0, 2141501, 72890696],
    "cuda_event_sync": [0, 263000, 49000, 0, 2000, 0, 0, 212000],
    "mi210_gpu_only": [1, 5979503, 5343422, 0, 0, 0, 0, 636081],
    "mi250_no_distributed_info": [2, 8911887, 110881, 0, 38161, 0, 0, 8762845],
    "mi300_resnet_checkpoint_rank0of8": [2, 86567708, 25739303, 71516523, 2974246, 15891299, 55625224, 2565652],
    "sendrecv_128ranks/rank0": [0, 1222847000, 210320000, 396199000, 1325000, 59216000, 336983000, 675191000],
    "sendrecv_128ranks/rank1": [1, 1231186000, 271973000, 379053000, 16504000, 75530000, 303523000, 651136000],
    "v100_dlrm_8ranks/rank0": [0, 13009000, 1034000, 5798000, 19000, 261000, 5537000, 6419000],
    "v100_dlrm_8ranks/rank1": [1, 18749000, 1246000, 11336000, 19000, 280000, 11056000, 6428000],
    "v100_dlrm_8ranks/rank2": [2, 11350000, 1068000, 3492000, 19000, 275000, 3217000, 7046000],
    "v100_dlrm_8ranks/rank3": [3, 18853000, 1240000, 9774000, 28000, 324000, 9450000, 8145000],
    "v100_dlrm_8ranks/rank4": [4, 16589000, 1126000, 6587000, 26000, 37000, 6550000, 8887000],
    "v100_dlrm_8ranks/rank5": [5, 16392000, 1041000, 6251000, 19000, 40000, 6211000, 9121000],
    "v100_dlrm_8ranks/rank6": [6, 11410000, 1051000, 3558000, 19000, 269000, 3289000, 7051000],
    "v100_dlrm_8ranks/rank7": [7, 10967000, 1059000, 1746000, 20000, 166000, 1580000, 8308000],
    "vllm_decode_graph_replay": [2, 10743181, 10674517, 0, 43191, 0, 0, 25473],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_overlap_of_a_real_trace(shared_traces: Path, name: str) -> None:
    found = overlap(load(shared_traces / f"{name}.json.gz"), {}, Settings())[0].frame
    assert found[COLUMNS].to_numpy().tolist() == [EXPECTED[name]]


def test_a_folder_of_ranks_is_a_row_a_rank(shared_traces: Path) -> None:
    run = load(shared_traces / "v100_dlrm_8ranks")
    found = overlap(run, {}, Settings())[0].frame
    assert found["rank"].tolist() == list(range(8))
    assert found[COLUMNS].to_numpy().tolist() == [EXPECTED[f"v100_dlrm_8ranks/rank{rank}"] for rank in range(8)]
    assert found["source"].tolist() == [f"rank{rank}.json.gz" for rank in range(8)]


def test_a_graph_replay_without_communication_says_so(shared_traces: Path) -> None:
    (found,) = overlap(load(shared_traces / "vllm_decode_graph_replay.json.gz"), {}, Settings())[0].frame.to_dict("records")
    assert math.isnan(found["hidden_ratio"])
    assert found["note"] == "no communication"


# Of the 17 generic kernels of the MI300 file 12 carry arguments; symmetric memory is known by its kernels' names.
EVIDENCE = {"b200_symm_mem_rank0of8": {"metadata": 1, "name": 73}, "mi300_resnet_checkpoint_rank0of8": {"metadata": 12, "name": 5}}


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_of_communication(shared_traces: Path, name: str) -> None:
    activities = load(shared_traces / f"{name}.json.gz").activities
    found = activities["evidence"].astype(str)[activities["class"] == "comm"].value_counts()
    assert found.to_dict() == EVIDENCE[name]
