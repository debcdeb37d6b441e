"""CSV: a folder, one file a table."""

import math

from c3prof.renderers import csv
from c3prof.table import Column, Report, Schema, Table

SCHEMA = Schema(
    "t",
    "A table",
    (
        Column("name", "category", "", ""),
        Column("x", "float64", "ratio", ""),
        Column("ok", "bool", "", ""),
        Column("n", "object", "ns", ""),
    ),
)
TABLE = Table.of(SCHEMA, {"name": ['void f<a, "b">()', "é\nx"], "x": [0.1, math.nan], "ok": [True, False], "n": [2**60 + 1, None]})


def test_the_whole_file():
    assert csv.text(TABLE) == 'name,x,ok,n\n"void f<a, ""b"">()",0.1,true,1152921504606846977\n"é\nx",,false,\n'


def test_a_folder_with_one_file_a_table(tmp_path):
    written = csv.write(Report({"t": TABLE, "empty": Table.of(Schema("empty", "Empty", SCHEMA.columns))}), tmp_path / "new" / "out")
    assert [path.name for path in written] == ["t.csv", "empty.csv"]
    assert written[0].read_text(encoding="utf-8") == csv.text(TABLE)
    assert written[1].read_text(encoding="utf-8") == "name,x,ok,n\n"
