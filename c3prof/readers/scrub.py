"""A trace without what tells whose it is: hosts, users, paths, addresses and stacks. Everything else stays byte for byte.

Only the insides of strings change, so numbers, structure and even damage are what they were, and every analysis gives the
same numbers. A path becomes <path 1>, a host host-1, a user user-1: equal texts stay equal, different ones different.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

_HOST_KEYS = frozenset(b"host_name hostname host node node_name nodename fqdn".split())
_USER_KEYS = frozenset(b"user username user_name owner login".split())
_DROPPED_KEYS = frozenset(
    b"call_stack stack stacktrace tracename trace_name trace_id cmdline command_line command argv cwd working_directory "
    b"job job_name job_id sha256 email environment env log_dir output_dir".split()
)
_GENERAL = frozenset(b"localhost root user users shared public runner ubuntu data home".split())
"""Names that tell nothing, and might be words of a kernel's name."""

_TEXT = rb'"([^"\\\n]*(?:\\.[^"\\\n]*)*)"'
_TOKEN = re.compile(_TEXT + rb"(?:\s*:\s*" + _TEXT + rb")?|(?P<odd>[^\s\d\"{}\[\]:,+\-.eEtrufalsn])")
"""A string, or a key with its string. Anything else that is no number, bracket or word of JSON is odd: damage."""

_NAMED = re.compile(
    rb'(?i:"(?P<key>'
    + b"|".join(sorted(_HOST_KEYS | _USER_KEYS))
    + rb')")\s*:\s*'
    + _TEXT
    + rb'|(?:/|\\/|\\)(?:home|Users|users)(?:/|\\/|\\{1,2})(?P<home>[^"\\/\s]+)'
)

_REST = rb"(?:[^\"\\/\n]|\\[^/\n])"  # of a path's component
_WHAT = re.compile(
    rb"(?P<frame>^(?:<[^\"]*>|[^\"]*\.py\w?)\(\d+\): .*$|^<built-in .*$)"
    rb"|(?P<path>(?<![\w)>.])(?:~|file:/?)?(?:\\?/(?![\s/\\])" + _REST + rb"+){2,}(?:\\?/)?"
    rb"|(?<!\w)[A-Za-z]:\\{1,2}\w.*|^\\{2,4}\w.*"
    rb"|[\w.+@%~-]*(?:\\?/[\w.+@%~-]+)*\.py\b)"
    rb"|(?P<address>[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]))"
)
_HINTS = re.compile(rb"[/\\@]|\.py\b|\d\.\d+\.\d|^<")
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_LONGEST = 1 << 24
_REMEMBERED = 1 << 20


class Pseudonyms:
    """The stand-ins of one run: give the same object to all its files, so that hosts stay the same and distinct."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], bytes] = {}
        self._counts: dict[str, int] = {}
        self._words: dict[bytes, bytes] = {}

    def of(self, kind: str, text: bytes) -> bytes:
        """The stand-in of a text: <path 1>, host-2, …"""
        if (kind, text) not in self._known:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[kind, text] = (f"{kind}-{number}" if kind in ("host", "user") else f"<{kind} {number}>").encode()
        return self._known[kind, text]

    def learn(self, piece: bytes) -> None:
        """Remember the hosts and users that a piece of the file names, to find them elsewhere in it."""
        for match in _NAMED.finditer(piece):
            self._remember("host" if (match["key"] or b"").lower() in _HOST_KEYS else "user", match["home"] or match[2])

    def _remember(self, kind: str, name: bytes) -> None:
        for word in dict.fromkeys((name, name.split(b".")[0] if kind == "host" else name)):
            if len(word) > 3 and word.lower() not in _GENERAL and not word.isdigit():
                self._words.setdefault(word, self.of(kind, name))

    def words(self) -> re.Pattern[bytes]:
        """Any of the remembered names as a whole word."""
        longest_first = sorted(self._words, key=lambda word: (-len(word), word))
        return re.compile(rb"(?<![\w-])(?:" + b"|".join(map(re.escape, longest_first)) + rb")(?![\w-])" if longest_first else rb"(?!)")

    def word(self, match: "re.Match[bytes]") -> bytes:
        return self._words[match[0]]


def learned(blocks: Iterable[bytes], names: Pseudonyms) -> Pseudonyms:
    """The pseudonyms with the hosts and users that the file names, wherever they stand: the first of two passes."""
    for piece in _pieces(blocks):
        names.learn(piece)
    return names


def scrubbed(blocks: Iterable[bytes], names: Pseudonyms) -> Iterator[bytes]:
    """The file's bytes without paths, stacks, addresses and the names that the pseudonyms know: the second pass."""
    scrubbing = _Scrubbing(names)
    for piece in _pieces(blocks):
        yield scrubbing.piece(piece)


class _Scrubbing:
    """Strings → strings, each distinct one once."""

    def __init__(self, names: Pseudonyms) -> None:
        self.names, self.words = names, names.words()
        self.done: dict[bytes, bytes] = {}
        self.odd = False

    def piece(self, piece: bytes) -> bytes:
        clean = self._strings(piece)
        if not self.odd:
            return clean
        events = [piece[a:b] for a, b in _between(piece)]
        return b"".join(self._damaged(event) for event in events)

    def _strings(self, piece: bytes) -> bytes:
        self.odd = False
        return _TOKEN.sub(self._token, piece)

    def _damaged(self, event: bytes) -> bytes:
        """An event whose strings cannot be told apart is searched line by line, quotes or not."""
        clean = self._strings(event)
        return clean if not self.odd else b"\n".join(self._text(line) for line in event.split(b"\n"))

    def _token(self, match: "re.Match[bytes]") -> bytes:
        token = match[0]
        if token in self.done:
            return self.done[token]
        if match["odd"]:
            self.odd = True
            return token
        if len(self.done) > _REMEMBERED:
            self.done.clear()
        self.done[token] = clean = self._clean(token, match)
        return clean

    def _clean(self, token: bytes, match: "re.Match[bytes]") -> bytes:
        if match[2] is None:
            return b'"' + self._text(match[1]) + b'"'
        before, key = token[: match.start(2) - match.start()], match[1].lower().replace(b" ", b"_")
        if key in _DROPPED_KEYS:
            return before + b'"'
        kind = "host" if key in _HOST_KEYS else "user" if key in _USER_KEYS else ""
        value = self.names.of(kind, match[2]) if kind and match[2] else self._text(match[2])
        return before + value + b'"'

    def _text(self, text: bytes) -> bytes:
        if _HINTS.search(text):
            text = _WHAT.sub(lambda match: self.names.of(str(match.lastgroup), match[0]), text)
        return self.words.sub(self.names.word, text)


def _between(piece: bytes) -> list[tuple[int, int]]:
    cuts = [0, *(match.end() for match in _BOUNDARY.finditer(piece)), len(piece)]
    return list(pairwise(cuts))


def _pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks cut anew where an event ends, so that no string lies in two pieces."""
    rest = b""
    for block in blocks:
        rest += block
        cut = _last_boundary(rest)
        if cut or len(rest) > _LONGEST:  # no event ends in so many bytes: damaged, or not a trace
            yield rest[: cut or len(rest)]
            rest = rest[cut:] if cut else b""
    if rest:
        yield rest


def _last_boundary(data: bytes) -> int:
    for back in (1 << 14, 1 << 18, len(data)):
        ends = [match.end() for match in _BOUNDARY.finditer(data, max(0, len(data) - back))]
        if ends:
            return ends[-1]
    return 0
