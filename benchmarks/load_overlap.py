"""Seconds that c3prof needs to load a trace (all Trace columns, no cache) and compute overlap."""

import json
import sys
import time

import c3prof
from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings

begin = time.perf_counter()
trace = c3prof.load(sys.argv[1])
loaded = time.perf_counter()
report = analyze(trace, Settings(only=("overlap",)))
end = time.perf_counter()
print(json.dumps({"load_s": loaded - begin, "overlap_s": end - loaded, "events": int(trace.ranks["events"].sum())}))
