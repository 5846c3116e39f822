r"""Text queries: Elasticsearch's simple query string, read into a tree of conditions.

Terms side by side must all hold; `+` says so, `|` is "or", `-` right before a term, phrase or group is "not",
`( )` group, `"..."` is a phrase and `"..."~N` one whose words may be moved by N places, `word*` is a prefix, `word~N`
allows N edits (2 when N is missing, never more), `\` makes the next character an ordinary one. Operators are read from
the left with one precedence: `a | b c` is (a or b) and c. Nothing is an error: an operator that has nothing to work on
is passed over, and so is a quote or parenthesis without its partner. That is Lucene's SimpleQueryParser, state by
state; only how much a query may hold is limited.

Reading takes time proportional to the query's length, and neither it nor `fold` recurses.

Long: the reader's states share one position in the query; Lucene's own parser, too, is one file to hold it against.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from .text import lower, words

MOST_WORDS = 1024  #: as many clauses as Elasticsearch takes at least
MOST_FUZZY = 100  #: each is compared with every different word of the dataset
MOST_LEVELS = 128  #: of "and", "or" and "not" within each other, which is memory while a query is answered
MOST_EDITS = 2
MOST_SLOP = 2**31 - 1
SPACES = " \t\n\r"
ENDS = frozenset('"|+()' + SPACES)


class QueryTooLargeError(Exception):
    """A query holds more than this search takes; one line that says how much it takes."""


@dataclass(frozen=True)
class Everything:
    """Every record: the query `*`."""


@dataclass(frozen=True)
class Terms:
    """Words that all occur in one field, in any order: one word as a rule, several where a dash or the like cut it."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Phrase:
    """Words that stand one after another, or out of place by `slop` in all; exchanging two neighbours costs 2."""

    words: tuple[str, ...]
    slop: int = 0


@dataclass(frozen=True)
class Prefix:
    """A word that begins so."""

    start: str


@dataclass(frozen=True)
class Fuzzy:
    """A word that at most `edits` insertions, deletions and substitutions turn into this one."""

    word: str
    edits: int


@dataclass(frozen=True)
class Not:
    """Matches what its part does not match."""

    part: Node


@dataclass(frozen=True)
class Both:
    """Matches what all parts match."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    """Matches what at least one part matches."""

    parts: tuple[Node, ...]


Leaf: TypeAlias = Everything | Terms | Phrase | Prefix | Fuzzy
Node: TypeAlias = Leaf | Not | Both | Either
T = TypeVar("T")


@dataclass
class State:
    """The progress in reading one group, or the whole query."""

    index: int
    end: int
    joined: type[Both | Either] | None = None  #: the operator in front of the next part, where one was written
    kind: type[Both | Either] | None = None  #: what `parts` are joined by
    parts: list[Node] = field(default_factory=list)
    negated: bool = False

    def top(self) -> Node | None:
        """All that was read so far as one node."""
        if self.kind is None:
            return self.parts[0] if self.parts else None
        return self.kind(tuple(self.parts))

    def add(self, part: Node | None) -> None:
        """Join a part to what was read so far; None, what holds no word, leaves everything as it is."""
        if part is None:
            return
        part = Not(part) if self.negated else part
        if self.parts:
            joined = self.joined or Both
            if joined is not self.kind and (top := self.top()) is not None:
                self.parts, self.kind = [top], joined
        self.parts.append(part)
        self.joined = None


def parse(query: str) -> Node | None:
    """Read a query; None, which matches nothing, when no word is in it. Raises QueryTooLargeError."""
    if query.strip() == "*":
        return Everything()
    tree = Parser(query).parse()
    if tree is not None and (levels := fold(tree, lambda leaf: 0, lambda node, below: 1 + max(below))) > MOST_LEVELS:
        raise QueryTooLargeError(f"the text query nests operators {levels} deep; at most {MOST_LEVELS} are allowed")
    return tree


class Parser:
    """One reading of one query."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.words = 0
        self.fuzzy = 0
        self.closing = closing_parentheses(query)
        self.quotes = next_quotes(query)

    def parse(self) -> Node | None:
        """The whole query's tree."""
        states = [State(0, len(self.query))]
        while True:
            state = states[-1]
            if state.index < state.end:
                inner = self.step(state)
                if inner is not None:
                    states.append(inner)
            elif len(states) == 1:
                return state.top()
            else:
                states.pop()
                states[-1].add(state.top())
                states[-1].index = state.end + 1
                states[-1].negated = False

    def step(self, state: State) -> State | None:
        """Read the next character, term or phrase; a group is returned, to be read first."""
        character = self.query[state.index]
        if character == "-":
            state.negated = not state.negated
            state.index += 1
            return None
        if character == "(":
            if (inner := self.group(state)) is not None:
                return inner
        elif character == '"':
            self.phrase(state)
        elif character in "+|":
            if state.joined is None and state.parts:
                state.joined = Both if character == "+" else Either
            state.index += 1
        elif character in SPACES or character == ")":
            state.index += 1
        else:
            self.term(state)
        state.negated = False  # not even a space may stand between - and what it negates
        return None

    def group(self, state: State) -> State | None:
        """The state of the group that begins here; None when it is empty or never closed, and then passed over."""
        start = state.index + 1
        end = self.closing.get(state.index)
        if end is None or end >= state.end:
            state.index = start
            return None
        if end == start:
            state.joined = None
            state.index = end + 1
            return None
        return State(start, end)

    def phrase(self, state: State) -> None:
        """Read "words" or "words"~N."""
        start = state.index + 1
        end = self.quotes[start]
        if end >= state.end:
            state.index = start
            return
        follows = self.query[end + 1 : min(end + 3, state.end)]
        if end == start and follows[:1] != "~":
            state.joined = None
            state.index = end + 1
            return
        slop = 0
        state.index = end
        if follows[:1] == "~":
            state.index = end + 1
            if len(follows) == 2:
                slop = self.number(state)
        found = self.counted(words(unescaped(self.query[start:end])))
        state.add(Phrase(found, slop) if len(found) > 1 else Terms(found) if found else None)
        state.index += 1  # with a slop, the character that ended its number is passed over too, as Lucene does

    def term(self, state: State) -> None:
        """Read word, word* or word~N."""
        query, index = self.query, state.index
        copied: list[str] = []
        prefix = escaped = fuzzy = False
        while index < state.end:
            character = query[index]
            if not escaped:
                if character == "\\":
                    escaped, prefix = True, False
                    index += 1
                    continue
                if character in ENDS:
                    break
                if character == "~" and copied:
                    fuzzy = True
                    break
                prefix = character == "*" and bool(copied)
            escaped = False
            copied.append(character)
            index += 1
        state.index = index
        edits = min(self.number(state), MOST_EDITS) if fuzzy else 0
        if not copied:
            return
        text = "".join(copied)
        if edits:
            self.fuzzy += 1
            if self.fuzzy > MOST_FUZZY:
                raise QueryTooLargeError(f"the text query has more than {MOST_FUZZY} words with ~; use fewer")
            state.add(Fuzzy(self.counted([lower(text)])[0], edits))
        elif prefix and not fuzzy:
            state.add(Prefix(*self.counted([lower(text[:-1])])))
        else:
            found = self.counted(words(text))
            state.add(Terms(found) if found else None)

    def number(self, state: State) -> int:
        """Read what follows ~ up to the end of the term: 2 when nothing does, 0 when it is no number."""
        start = state.index = state.index + 1
        while state.index < state.end and self.query[state.index] not in ENDS:
            state.index += 2 if self.query[state.index] == "\\" else 1
        state.index = min(state.index, state.end)
        written = self.query[start : state.index]
        if not written:
            return 2
        if not re.fullmatch(r"\d{1,10}", written):
            return 0
        return value if (value := int(written)) <= MOST_SLOP else 0

    def counted(self, found: list[str]) -> tuple[str, ...]:
        """Return the words; refuse a query with too many."""
        self.words += len(found)
        if self.words > MOST_WORDS:
            raise QueryTooLargeError(f"the text query has more than {MOST_WORDS} words; use fewer")
        return tuple(found)


def ordinary(query: str) -> list[tuple[int, str]]:
    """The characters that no backslash stands before, with their places; a backslash itself is not among them."""
    found = []
    escaped = False
    for index, character in enumerate(query):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            found.append((index, character))
    return found


def closing_parentheses(query: str) -> dict[int, int]:
    """The place of each opening parenthesis that is closed, and where; parentheses within quotes count."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, character in ordinary(query):
        if character == "(":
            opened.append(index)
        elif character == ")" and opened:
            found[opened.pop()] = index
    return found


def next_quotes(query: str) -> list[int]:
    """For each place (and the end) that of the next quote from there on; the length when there is none."""
    quotes = {index for index, character in ordinary(query) if character == '"'}
    found = [len(query)] * (len(query) + 1)
    for index in range(len(query) - 1, -1, -1):
        found[index] = index if index in quotes else found[index + 1]
    return found


def unescaped(text: str) -> str:
    """The text without the backslashes that make the next character an ordinary one."""
    return re.sub(r"\\(.?)", r"\1", text, flags=re.DOTALL)


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node; none of a leaf."""
    if isinstance(node, Not):
        return (node.part,)
    return node.parts if isinstance(node, Both | Either) else ()


def fold(tree: Node, leaf: Callable[[Leaf], T], join: Callable[[Not | Both | Either, list[T]], T]) -> T:
    """A value from the leaves up, without recursion: `leaf` of a leaf, `join` of a node and its parts' values."""
    done: list[T] = []
    waiting: list[tuple[Node, bool]] = [(tree, False)]
    while waiting:
        node, ready = waiting.pop()
        if not isinstance(node, Not | Both | Either):
            done.append(leaf(node))
        elif ready:
            size = len(children(node))
            done[-size:] = [join(node, done[-size:])]
        else:
            waiting.append((node, True))
            waiting.extend((part, False) for part in reversed(children(node)))
    return done[0]
