def doctor(path: str) -> None:
    """TODO."""
