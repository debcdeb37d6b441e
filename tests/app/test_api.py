"""The JSON that the timeline asks for, and what it gets for nonsense."""

import csv
import gzip
import io
import json

import pytest

from c3prof.app.factory import create_app
from c3prof.app.run import Run
from c3prof.renderers.perfetto import chosen_ranks
from tests.app.conftest import HOSTILE

HERE = {"Host": "127.0.0.1:8050"}


@pytest.fixture(scope="module")
def client(run):
    return create_app(run).server.test_client()


def post(client, name, **body):
    answer = client.post(f"/api/{name}", json=body, headers=HERE)
    return answer.status_code, answer.get_json()


def test_the_details_of_a_kernel(client, timeline):
    row = int(timeline.lanes["r0/d0/s7"].rows[0])
    status, found = post(client, "span", lane="r0/d0/s7", row=row)
    fields = dict(found["fields"])
    assert status == 200
    assert (found["name"], found["class"], found["begin"], found["end"]) == ("gemm_kernel", "compute", 10_000, 50_000)
    assert fields["duration"] == "40.0 µs"
    assert fields["operator"] == "aten::linear"
    assert fields["dims"] == "[[64,64]]"
    assert fields["grid"] == "[8,1,1]"
    assert fields["launch delay"] == "7.00 µs"
    assert found["links"]["launches"]["begin"] == 2_000
    assert [(c["name"], c["shared_ns"]) for c in found["co_runners"]] == [("ncclDevKernel_allreduce_RING_LL", 20_000)]


def test_the_details_of_a_collective(client, timeline):
    row = int(timeline.lanes["r1/d0/s20"].rows[0])
    fields = dict(post(client, "span", lane="r1/d0/s20", row=row)[1]["fields"])
    assert (fields["collective"], fields["group"], fields["group size"], fields["message size"]) == ("all_reduce", "0", "2", "4.10 kB")


def test_a_launch_leads_to_what_it_launched(client, timeline):
    lane = next(lane for lane in timeline.lanes.values() if lane.frame == "launches" and lane.rank == 0)
    found = post(client, "span", lane=lane.key, row=int(lane.rows[0]))[1]
    assert found["links"]["activities"]["name"] == "gemm_kernel"


def test_every_span_of_every_lane_has_details(client, timeline):
    for lane in timeline.lanes.values():
        for row in lane.rows.tolist():
            if row >= 0:
                assert post(client, "span", lane=lane.key, row=row)[0] == 200


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("span", {}),
        ("span", {"lane": "r0/d0/s7", "row": -1}),
        ("span", {"lane": "r0/d0/s7", "row": 10**12}),
        ("span", {"lane": "../../etc/passwd", "row": 0}),
        ("view", {"lanes": 5, "begin": 0, "end": 1}),
        ("view", {"lanes": ["r0/d0/s7"], "begin": "x", "end": 1}),
        ("view", {"lanes": ["r0/d0/s7"], "begin": 0}),
        ("search", {"lanes": None, "text": "x"}),
    ],
)
def test_nonsense_is_an_error_and_no_crash(client, name, body):
    status, answer = post(client, name, **body)
    assert status == 400
    assert "cannot be answered" in answer["error"]


def test_a_body_that_is_no_object_is_an_error(client):
    assert client.post("/api/view", data=b"[1,2", headers=HERE).status_code == 400


def test_a_body_too_deep_or_too_long_is_an_error(client):
    deep = b"[" * 200_000
    assert client.post("/api/view", data=deep, headers=HERE, content_type="application/json").status_code == 400
    assert client.post("/api/view", data=b" " * 17_000_000, headers=HERE, content_type="application/json").status_code in (400, 413)


def test_a_table_as_csv(client, run):
    name = next(iter(run.report), None)
    if name is None:
        pytest.skip("no analysis is registered")
    answer = client.get(f"/api/csv?table={name}", headers=HERE)
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == run.report[name].schema.names
    assert len(rows) == len(run.report[name]) + 1
    assert client.get("/api/csv?table=none", headers=HERE).status_code == 404


def test_a_window_for_perfetto(client):
    answer = client.get("/api/perfetto?begin=0&end=100000&ranks=1", headers=HERE)
    events = json.loads(gzip.decompress(answer.data))["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X" and e["cat"] in ("compute", "comm")]
    assert {e["name"] for e in kernels} == {"gemm_kernel", "ncclDevKernel_allreduce_RING_LL", HOSTILE}
    assert client.get("/api/perfetto?begin=x", headers=HERE).status_code == 400


def test_while_it_loads_it_says_so():
    waiting = create_app(Run(("x",))).server.test_client()
    assert waiting.post("/api/lanes", json={}, headers=HERE).status_code == 503
    assert waiting.get("/api/state", headers=HERE).get_json()["ready"] is False


@pytest.mark.parametrize(("text", "ranks"), [("", [-1, 0, 1, 2]), ("0-1", [0, 1]), ("2,0", [2, 0]), ("7", []), ("-1", [-1])])
def test_ranks_as_text(text, ranks):
    assert chosen_ranks(text, [-1, 0, 1, 2]) == ranks
