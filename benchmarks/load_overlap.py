"""Seconds that c3prof needs to load a trace (all Trace columns, no cache) and compute overlap, and to decompress it alone.

Alone twice: by zlib, as gunzip and Python's gzip do it, and by isal, as the reader does.
"""

import gzip
import json
import sys
import time
from pathlib import Path

import c3prof
from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.readers.blocks import Blocks
from c3prof.readers.scan import scanner_name

begin = time.perf_counter()
with gzip.open(sys.argv[1]) as file:
    while file.read(1 << 20):
        pass
gunzip = time.perf_counter() - begin
begin = time.perf_counter()
with Path(sys.argv[1]).open("rb") as file:
    for _ in Blocks(file, "", None):
        pass
isal = time.perf_counter() - begin

begin = time.perf_counter()
trace = c3prof.load(sys.argv[1])
loaded = time.perf_counter()
report = analyze(trace, Settings(only=("overlap",)))
end = time.perf_counter()
printed = {"load_s": loaded - begin, "overlap_s": end - loaded, "gunzip_s": gunzip, "isal_s": isal}
print(json.dumps({**printed, "events": int(trace.ranks["events"].sum()), "scan": scanner_name()}))
