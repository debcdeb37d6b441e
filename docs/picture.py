"""Writes docs/images/analyze.svg: the page of `c3prof analyze` on a trace, as a terminal shows it.

python docs/picture.py TRACE [OUT]
"""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from c3prof.config import config
from c3prof.pipeline import report
from c3prof.renderers.terminal import WIDTH, page

THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196)],
)


def picture(trace: str) -> str:
    """The SVG."""
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False)
    for part in page(report([trace], config({}))):
        console.print(part)
    return console.export_svg(title=f"c3prof analyze {Path(trace).name}", theme=THEME, unique_id="analyze")


if __name__ == "__main__":
    Path(sys.argv[2] if len(sys.argv) > 2 else "docs/images/analyze.svg").write_text(picture(sys.argv[1]), encoding="utf-8")
