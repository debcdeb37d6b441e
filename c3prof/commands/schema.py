"""c3prof schema: what the JSON promises, and docs/columns.md."""

from typing import Annotated

import typer

from c3prof.errors import WrongSettings


def schema(format_: Annotated[str, typer.Option("--format", "-f", help="json or markdown.")] = "json") -> None:
    """Print the JSON Schema of the report, or every table and column as Markdown."""
    if format_ not in ("json", "markdown"):
        raise WrongSettings(f"--format {format_}: expected json or markdown")
    import msgspec

    from c3prof.analysis import schemas
    from c3prof.renderers.docs import columns_page
    from c3prof.renderers.envelope import json_schema

    if format_ == "markdown":
        print(columns_page(schemas()), end="")
    else:
        print(msgspec.json.format(msgspec.json.encode(json_schema(schemas())), indent=2).decode())
