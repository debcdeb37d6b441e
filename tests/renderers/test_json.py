"""The envelope c3prof.report/1."""

import json as stdlib_json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from c3prof.analysis import schemas
from c3prof.errors import DataWarning
from c3prof.renderers import json
from c3prof.renderers.envelope import json_schema
from c3prof.renderers.values import pieces
from c3prof.table import Column, Report, Schema, Table

SCHEMA = Schema(
    "t",
    "A table",
    (
        Column("n", "int64", "ns", "a count"),
        Column("x", "float64", "ratio", "a share"),
        Column("ok", "bool", "", "a flag"),
        Column("kind", "category", "", "a word"),
        Column("maybe", "object", "ns", "an integer that may be unknown"),
    ),
)


def made(**columns):
    data = {"n": [1, 2**60 + 1], "x": [0.5, math.nan], "ok": [True, False], "kind": ["a", None], "maybe": [7, None], **columns}
    return Report(
        {"t": Table.of(SCHEMA, data)}, (DataWarning("code", "text", 3, "a.json"),), {"events": 4}, ("a.json",), {"steps": (3, 7), "top": 20}
    )


def test_the_whole_envelope():
    assert stdlib_json.loads(json.text(made())) == {
        "schema": "c3prof.report/1",
        "producer": {"c3prof": "0.1.0", "definitions": 1},
        "inputs": ["a.json"],
        "settings": {"steps": [3, 7], "top": 20},
        "tables": {
            "t": {
                "title": "A table",
                "source": "c3prof",
                "columns": [{"name": c.name, "dtype": c.dtype, "unit": c.unit, "doc": c.doc} for c in SCHEMA.columns],
                "rows": [
                    {"n": 1, "x": 0.5, "ok": True, "kind": "a", "maybe": 7},
                    {"n": 2**60 + 1, "x": None, "ok": False, "kind": None, "maybe": None},
                ],
            }
        },
        "warnings": [{"code": "code", "message": "text", "count": 3, "path": "a.json"}],
        "coverage": {"events": 4},
    }


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pieces_make_the_same_text(size, monkeypatch):
    whole = json.text(made())
    monkeypatch.setattr(json, "pieces", lambda table: pieces(table, size))
    assert json.text(made()) == whole


def test_no_tables_and_no_rows():
    assert stdlib_json.loads(json.text(Report({})))["tables"] == {}
    assert stdlib_json.loads(json.text(Report({"t": Table.of(SCHEMA)})))["tables"]["t"]["rows"] == []


@pytest.mark.parametrize("unknown", [None, math.nan, pd.NA, np.nan, np.float64("inf"), pd.NaT])
def test_every_way_of_not_knowing_is_null(unknown):
    rows = stdlib_json.loads(json.text(made(maybe=[unknown, unknown])))["tables"]["t"]["rows"]
    assert [row["maybe"] for row in rows] == [None, None]


def test_numpy_scalars_in_object_columns_are_numbers():
    rows = stdlib_json.loads(json.text(made(maybe=[np.int64(5), np.float64(0.25)])))["tables"]["t"]["rows"]
    assert [row["maybe"] for row in rows] == [5, 0.25]
    rows = stdlib_json.loads(json.text(made(maybe=[np.str_("a"), np.bool_(True)])))["tables"]["t"]["rows"]
    assert [row["maybe"] for row in rows] == ["a", True]


def test_it_is_one_object_on_one_line_and_strict_json():
    text = json.text(made())
    assert text.count("\n") == 1
    assert text.endswith("}\n")
    stdlib_json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_absolute_paths_do_not_get_out():
    report = Report(
        {}, (DataWarning("c", "m", 1, "/home/me/x.json"),), {}, ("/home/me/x.json", "s3://bucket/y.json"), {"rules": "/home/me/rules.toml"}
    )
    found = stdlib_json.loads(json.text(report))
    assert found["inputs"] == ["x.json", "s3://bucket/y.json"]
    assert found["warnings"][0]["path"] == "x.json"
    assert found["settings"]["rules"] == "rules.toml"


def test_the_schema_accepts_it_and_refuses_a_lost_column():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema([SCHEMA])
    found = stdlib_json.loads(json.text(made()))
    jsonschema.validate(found, schema)
    del found["tables"]["t"]["rows"][0]["x"]
    with pytest.raises(jsonschema.ValidationError, match="'x' is a required property"):
        jsonschema.validate(found, schema)


def promises(schema):
    """(table, column, dtype, unit) that a JSON Schema of the report names."""
    tables = schema["properties"]["tables"]["properties"]
    rows = {name: table["properties"]["rows"]["items"]["properties"] for name, table in tables.items()}
    return {(table, name, cell["dtype"], cell["unit"]) for table, row in rows.items() for name, cell in row.items()}


def test_within_version_1_nothing_is_renamed_removed_or_given_another_unit():
    """Golden: `c3prof schema > tests/golden/report.schema.json` after an addition; a promise of that file is never taken back."""
    golden = stdlib_json.loads((Path(__file__).parents[1] / "golden" / "report.schema.json").read_text())
    now = json_schema(schemas())
    assert promises(golden) - promises(now) == set(), "promised columns are gone or changed"
    assert promises(now) - promises(golden) == set(), "new columns: run c3prof schema > tests/golden/report.schema.json"
    assert golden == now, "run c3prof schema > tests/golden/report.schema.json"


@pytest.mark.parametrize(
    "column", [Column("n", "int64", "ms", "a count"), Column("m", "int64", "ns", "a count"), Column("n", "object", "ns", "a count")]
)
def test_a_changed_column_breaks_a_promise(column):
    changed = Schema("t", "A table", (column, *SCHEMA.columns[1:]))
    assert promises(json_schema([SCHEMA])) - promises(json_schema([changed])) == {("t", "n", "int64", "ns")}
