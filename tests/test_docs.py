"""What the documentation says of the code is so."""

import re
import sys
from pathlib import Path

from c3prof import cli

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def test_the_architecture_page_shows_the_layers_that_are_checked():
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    assert "\n".join(["```", *layers, "```"]) in (ROOT / "docs" / "architecture.md").read_text()


def test_every_link_leads_to_a_file():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in link]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
    assert links


def test_every_command_in_the_readme_exists(capsys):
    named = set(re.findall(r"(?:^|`)c3prof ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert cli.exit_code(["--help"]) == 0
    help_text = capsys.readouterr().out
    assert {name for name in named if not re.search(rf"^\W*{name}\b", help_text, re.MULTILINE)} == set()
    assert {"analyze", "doctor", "scrub", "hta"} <= named


def test_the_changes_name_this_version():
    assert f"## {cli.__version__}" in (ROOT / "CHANGELOG.md").read_text()
