"""Dictionary codes of the scan → categoricals of the frames."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Codes = npt.NDArray[np.int32]


class Strings:
    """The string table of a scan. Work on text is done once per string that is used, not per event."""

    def __init__(self, strings: Sequence[str]) -> None:
        self.texts = np.array([*strings, ""], dtype=object)[:-1]  # the extra entry keeps numpy from guessing a shape

    def used(self, codes: Codes) -> npt.NDArray[np.int64]:
        """The codes that occur, ascending."""
        seen = np.zeros(len(self.texts) + 1, bool)  # the last entry is where code -1 points
        seen[codes.astype(np.intp)] = True  # cast first: numpy's loop over other indices takes twice as long
        return np.flatnonzero(seen[:-1])

    def lookup(self, codes: Codes, function: Callable[[str], object], dtype: type | str, absent: object) -> npt.NDArray[Any]:
        """function(text) for each code, computed once per distinct text; `absent` where the code is -1."""
        used = self.used(codes)
        table = np.full(len(self.texts) + 1, absent, dtype=dtype)  # the last entry answers code -1
        table[used] = [function(text) for text in self.texts[used]]
        return table.take(codes)  # as table[codes], faster and without the interpreter's lock

    def categorical(self, codes: Codes) -> pd.Categorical:
        """The codes as a categorical over the texts that occur."""
        used = self.used(codes)
        return categorical(codes, used, self.texts[used])


def categorical(
    codes: npt.NDArray[np.signedinteger[Any]], used: npt.NDArray[np.int64], texts: Sequence[str] | npt.NDArray[np.object_]
) -> pd.Categorical:
    """Codes whose values `used` mean `texts` as a categorical; texts may repeat; other codes are missing."""
    position: dict[str, int] = {}
    for text in texts:
        position.setdefault(text, len(position))
    table = np.full(int(used.max()) + 2 if len(used) else 1, -1, np.int32)  # the last entry answers code -1
    table[used] = [position[text] for text in texts]
    return pd.Categorical.from_codes(table.take(codes), categories=pd.Index(list(position), dtype=object), validate=False)


def texts(values: Iterable[str | None]) -> pd.Categorical:
    """Texts as a categorical over those that occur, sorted; None and the empty text are missing."""
    values = list(values)
    position = {text: code for code, text in enumerate(sorted({text for text in values if text}))}
    codes = np.array([position.get(text or "", -1) for text in values], np.int32)
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(position), dtype=object), validate=False)
