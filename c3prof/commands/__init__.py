"""One command a file: each imports typer alone, and the rest when it runs, so that --help and completion start at once."""
