def hta(path: str) -> None:
    """TODO."""
