"""Seconds that c3prof needs to load a trace (all Trace columns, no cache) and compute overlap, and to decompress it alone."""

import json
import sys
import time
from pathlib import Path

import c3prof
from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.readers.blocks import Blocks

with Path(sys.argv[1]).open("rb") as file:
    begin = time.perf_counter()
    for _ in Blocks(file, "", None):
        pass
    gunzip = time.perf_counter() - begin

begin = time.perf_counter()
trace = c3prof.load(sys.argv[1])
loaded = time.perf_counter()
report = analyze(trace, Settings(only=("overlap",)))
end = time.perf_counter()
print(json.dumps({"load_s": loaded - begin, "overlap_s": end - loaded, "gunzip_s": gunzip, "events": int(trace.ranks["events"].sum())}))
