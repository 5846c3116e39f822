"""Read text, JSON and YAML that people or other programs wrote; all such reading goes through here.

Any fault of a file (missing, not a file, not UTF-8, cut off, nested too deep, an infinite value) becomes one line that
names the file and the place in it.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import json
import re
import stat
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from plumbline.errors import DataError, StudyError

DEEPEST = 100  # deepest nesting of YAML; a study has six levels
MOST = 200_000  # most values in a YAML file with its aliases expanded
LARGEST = 8 * 2**20  # largest YAML file in bytes


class MalformedError(DataError):
    """A text is not JSON or YAML; the message says what is wrong with it, but not in which file."""


def read_bytes(path: Path) -> bytes:
    """Return all bytes of a file. Raises FileNotFoundError, and DataError for any other fault."""
    with _readable(path):
        return path.read_bytes()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn errors of reading a file into a one-line DataError."""
    try:
        refuse_no_file(path)
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(str(path)) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeEncodeError:
        raise DataError(f"{path}: this locale cannot represent the file's name; set LC_ALL=C.UTF-8") from None
    except ValueError as error:  # a null in the name
        raise DataError(f"{str(path)!r} cannot be read: {error}") from None


def refuse_no_file(path: Path) -> None:
    """Raise DataError for a folder, and for a pipe or device, which would block; OSError as `stat` does."""
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise DataError(f"{path} is a folder, not a file")
    if not stat.S_ISREG(kind):
        raise DataError(f"{path} is not an ordinary file (a pipe or a device); write its content to a file first")


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text without a byte order mark; nulls are refused. Raises as `read_bytes` does."""
    try:
        return decoded(read_bytes(path))
    except MalformedError as error:
        raise DataError(f"{path}: {error}") from None


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file's text without line ends. Raises as `read_text` does."""
    with _readable(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoded(line.removesuffix(b"\n"), number)
            except MalformedError as error:
                raise DataError(f"{path}: {error}") from None


def decoded(content: bytes, first: int = 1) -> str:
    """Decode UTF-8 without a byte order mark. Raises MalformedError with the line of the first invalid byte.

    `first` is the number of the first line.
    """
    try:
        text = content.decode("utf-8-sig" if first == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = first + content.count(b"\n", 0, error.start)
        byte = f"0x{content[error.start]:02x}"
        raise MalformedError(f"not UTF-8 (byte {byte} in line {line}); save it as UTF-8") from None
    if "\0" in text:
        line = first + text.count("\n", 0, text.index("\0"))
        raise MalformedError(f"not text: holds a null character (line {line}); save it as UTF-8")
    return text


def read_json(path: Path) -> Any:
    """Return the JSON in a file. Raises FileNotFoundError, and DataError if it is not JSON."""
    try:
        return parse_json(read_bytes(path))
    except MalformedError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; NaN and Infinity are read as Python writes them.

    Raises MalformedError for a text that is not JSON, a repeated key, or half a surrogate pair.
    """
    if isinstance(text, bytes):
        text = decoded(text)
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise MalformedError(str(error)) from None
    except RecursionError:
        raise MalformedError("nested too deep") from None
    except ValueError:  # int() accepts at most 4300 digits
        raise MalformedError("a number has too many digits; shorten it") from None
    if _HALF.search(text) and not _encodes(value):
        raise MalformedError("holds half a surrogate pair (\\ud8.. alone); correct it")
    return value


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise MalformedError(f"key {twice[:60]!r} appears twice")
    return mapping


def _encodes(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


_MISSING = re.compile(r"\b(?:nan|null|NaN|NA)\b")  # in a list of numbers
_NUMPY = re.compile(r"\[\s*(?:-?\d+\.?\d*|None)(?:\s+(?:-?\d+\.?\d*|None))*\s*\]")
_LITERAL = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")(\s+(?=['"]))?""", re.DOTALL)


def list_in(cell: str) -> list[Any] | None:
    """Return the list that a cell of a table is, as JSON, Python or numpy writes it; None for another text.

    >>> list_in("['so' 'and so']"), list_in("[2. nan]"), list_in('["so"]'), list_in("[so]")
    (['so', 'and so'], [2.0, None], ['so'], None)
    """
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    plain = _MISSING.sub("None", cell) if not re.search("[\"']", cell) else cell
    spaced = re.sub(r"(?<=[\d.])\s+(?=[-\d.N])", ", ", plain) if _NUMPY.fullmatch(plain) else plain
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            apart = _LITERAL.sub(lambda literal: literal[1] + ", " * bool(literal[2]), spaced)  # Python would join them
            value = ast.literal_eval(apart)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if not isinstance(value, list):
        return None
    return [None if element != element else element for element in value]  # noqa: PLR0124 (NaN)


def read_yaml(path: Path) -> Any:
    """Return the YAML in a file of settings. Raises FileNotFoundError, and StudyError for any other fault."""
    if path.is_file() and path.stat().st_size > LARGEST:
        raise StudyError(f"{path}: larger than {LARGEST >> 20} MB, the limit for a study, prompt or rubric")
    try:
        return parse_yaml(read_text(path))
    except MalformedError as error:
        raise StudyError(f"{path}: not valid YAML: {error}") from None
    except DataError as error:
        raise StudyError(*error.args) from None


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text: mappings, lists, texts, numbers, true and false.

    As in YAML 1.2 `no`, `on`, `2024-03-01`, `12:30` and `010` are texts. Raises MalformedError for a text that is not
    YAML, a repeated key, tags, and aliases that expand to too much.
    """
    try:
        return copy.deepcopy(_loaded(text))
    except yaml.YAMLError as error:
        raise MalformedError(str(error)) from None
    except RecursionError:
        raise MalformedError("nested too deep") from None
    except ValueError:  # int() accepts at most 4300 digits
        raise MalformedError("a number has too many digits; shorten it") from None


@functools.lru_cache(maxsize=32)
def _loaded(text: str) -> Any:
    """Return the value of a text, cached: a command reads its rubric a dozen times."""
    _look_through(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)


_Level = tuple[str | None, int]  # anchor and value count of each open collection


def _look_through(text: str) -> None:
    """Refuse YAML that would take too long to read, before reading it."""
    sizes: dict[str, int] = {}  # values below each anchor, with aliases expanded
    within: list[_Level] = [(None, 0)]
    event: Any  # PyYAML's stubs know neither marks nor values
    for event in yaml.parse(text, Loader=_Loader):
        location = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = within.pop()
            _add(within, anchor, size, sizes, location)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise MalformedError(f"{location}: *{event.anchor} has no complete anchor before it; correct it")
            _add(within, None, sizes[event.anchor], sizes, location)
        elif isinstance(event, yaml.NodeEvent):
            tag = getattr(event, "tag", None)
            if tag not in (None, "!"):
                raise MalformedError(f"{location}: tags such as {tag} are not supported; write the value alone")
            if isinstance(event, yaml.CollectionStartEvent):
                within.append((event.anchor, 1))
                if len(within) > DEEPEST:
                    raise MalformedError(f"{location}: nested too deep")
                continue
            value = getattr(event, "value", "")
            if "\0" in value or not _encodes(value):
                raise MalformedError(f"{location}: holds a null character or half a surrogate pair; remove it")
            _add(within, event.anchor, 1, sizes, location)


def _add(within: list[_Level], anchor: str | None, size: int, sizes: dict[str, int], location: str) -> None:
    """Add the values of a collection that ended to its anchor and its parent."""
    if anchor is not None:
        sizes[anchor] = size
    outer, values = within[-1]
    if values + size > MOST:
        raise MalformedError(f"{location}: more than {MOST} values with aliases expanded; shorten the file")
    within[-1] = (outer, values + size)


_TAG = "tag:yaml.org,2002:"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader (LibYAML's, if available) that refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} appears twice", key_node.start_mark)
            if isinstance(key, Hashable):
                keys.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_SURPRISING = {f"{_TAG}{kind}" for kind in ("bool", "int", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _SURPRISING]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_DECIMAL = r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?"
for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    ("float", rf"{_DECIMAL}|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+0123456789."),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(f"^(?:{_pattern})$"), list(_first))
