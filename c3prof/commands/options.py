"""Options that several commands share, each declared once. None means: not given, ask C3PROF_*, c3prof.toml, the default."""

from typing import Annotated

import typer

Paths = Annotated[
    list[str] | None, typer.Argument(metavar="PATH", help="Traces: files, folders, globs or URLs; a run folder.", show_default=False)
]
Format = Annotated[str | None, typer.Option("--format", "-f", help="text, json, csv or html.", show_default="text")]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="OUT", help="Write to this file (csv: folder) instead of stdout.")]
By = Annotated[str | None, typer.Option("--by", help="Also show the overlap by step, stream, group or collective.")]
Steps = Annotated[str | None, typer.Option("--steps", metavar="A-B", help="Only these steps, like 3-7.")]
Rules = Annotated[str | None, typer.Option("--rules", metavar="FILE", help="TOML rules that add to what is communication.")]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="TABLE,...", help="Only these tables, in full.")]
Top = Annotated[int | None, typer.Option("--top", metavar="N", help="Rows that long tables keep.", show_default="20")]
Strict = Annotated[bool | None, typer.Option("--strict", help="Exit 3 when a warning bears on a number.")]
Quiet = Annotated[bool | None, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")]
NoCache = Annotated[bool | None, typer.Option("--no-cache", help="Neither use nor keep the parsed trace.")]
Sample = Annotated[str | None, typer.Option("--sample", metavar="NAME", help="A sample run instead of PATH.")]
Baseline = Annotated[str | None, typer.Option("--baseline", metavar="PATH", help="A second trace without overlap, for slowdown.")]
ShowConfig = Annotated[bool, typer.Option("--show-config", help="Print the settings and where each comes from, and exit.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="Processes that read inputs.", show_default="CPUs")]
Memory = Annotated[
    float | None, typer.Option("--memory", metavar="GB", help="Memory they may use together.", show_default="60 % of the free")
]
Scheduler = Annotated[str | None, typer.Option("--scheduler", metavar="ADDR", help="Read inputs on this dask scheduler's workers.")]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="local", help="Read inputs on a dask cluster of this machine.")]
Groups = Annotated[str | None, typer.Option("--groups", metavar="FILE", help='TOML: dimension of groups, name = "tp".')]
