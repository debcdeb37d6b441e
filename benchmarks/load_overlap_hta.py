"""Seconds that HolisticTraceAnalysis needs to load a trace and compute overlap; runs in an environment of its own."""

import json
import sys
import time
from pathlib import Path

from hta.trace_analysis import TraceAnalysis

path = Path(sys.argv[1])
begin = time.perf_counter()
analysis = TraceAnalysis(trace_files={int(sys.argv[2]): str(path)}, trace_dir=str(path.parent))
loaded = time.perf_counter()
frame = analysis.get_comm_comp_overlap(visualize=False)
end = time.perf_counter()
print(json.dumps({"load_s": loaded - begin, "overlap_s": end - loaded, "hidden": frame.iloc[0].to_dict()}))
