def scrub(path: str) -> None:
    """TODO."""
