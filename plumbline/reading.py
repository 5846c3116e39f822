"""The one way to read text, JSON and YAML that people or other programs wrote.

Whatever is wrong with a file (not there, no file, not UTF-8, cut off, nested without end, a number without end) becomes
one line that names the file and the place in it.
"""

from __future__ import annotations

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

from plumbline.errors import DataError

DEEPEST = 100  # levels of YAML within another; a study has six
MOST = 200_000  # values in a YAML file, its aliases written out
LARGEST = 8 * 2**20  # bytes of a YAML file


class MalformedError(DataError):
    """A text that is no JSON or YAML; the message says what is wrong with it, and not where it stands."""


def read_bytes(path: Path) -> bytes:
    """All bytes of a file. Raises FileNotFoundError, and DataError for whatever else keeps it from being read."""
    with _readable(path):
        return path.read_bytes()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What keeps a file from being read, in one line."""
    try:
        refuse_no_file(path)
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(str(path)) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeEncodeError:
        raise DataError(f"{path}: no such name can be written in this locale; set LC_ALL=C.UTF-8") from None
    except ValueError as error:  # a null in the name
        raise DataError(f"{str(path)!r} cannot be read: {error}") from None


def refuse_no_file(path: Path) -> None:
    """Raise DataError for a folder, and for a pipe or a device, which would be waited for; OSError as `stat` does."""
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise DataError(f"{path} is a folder, not a file")
    if not stat.S_ISREG(kind):
        raise DataError(f"{path} is not an ordinary file (a pipe or a device); write what it gives to a file")


def read_text(path: Path) -> str:
    """A file's text, which is UTF-8 (with or without a byte order mark) and holds no null. Raises as `read_bytes`."""
    try:
        return decoded(read_bytes(path))
    except MalformedError as error:
        raise DataError(f"{path}: {error}") from None


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file's text as `read_text` has it, without their ends, one after the other. Raises likewise."""
    with _readable(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoded(line.removesuffix(b"\n"), number)
            except MalformedError as error:
                raise DataError(f"{path}: {error}") from None


def decoded(content: bytes, first: int = 1) -> str:
    """UTF-8 as text, without a byte order mark. Raises MalformedError with the line of what is none.

    `first` is the number of the content's first line.
    """
    try:
        text = content.decode("utf-8-sig" if first == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = first + content.count(b"\n", 0, error.start)
        byte = f"0x{content[error.start]:02x}"
        raise MalformedError(f"not UTF-8 (byte {byte} in line {line}); save it as UTF-8") from None
    if "\0" in text:
        line = first + text.count("\n", 0, text.index("\0"))
        raise MalformedError(f"holds a null character (line {line}): no text; save it again, as UTF-8")
    return text


def read_json(path: Path) -> Any:
    """The JSON in a file. Raises FileNotFoundError, and DataError for what is no JSON."""
    try:
        return parse_json(read_bytes(path))
    except MalformedError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; NaN and Infinity are read as Python writes them.

    Raises MalformedError for a text that is none, for a key that stands twice, and for what cannot be text (half a
    surrogate pair).
    """
    if isinstance(text, bytes):
        text = decoded(text)
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise MalformedError(str(error)) from None
    except RecursionError:
        raise MalformedError("nested too deep") from None
    except ValueError as error:  # int() takes 4300 digits
        if isinstance(error, _TwiceError):
            raise MalformedError(str(error)) from None
        raise MalformedError("a number with more digits than can be read") from None
    if _HALF.search(text) and not _encodes(value):
        raise MalformedError("holds half a character (\\ud8.. alone); correct it")
    return value


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class _TwiceError(ValueError):
    """A key that stands twice in one object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise _TwiceError(f"key {twice[:60]!r} stands twice")
    return mapping


def _encodes(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_yaml(path: Path) -> Any:
    """The YAML in a file. Raises FileNotFoundError, and DataError for what is no YAML."""
    if path.is_file() and path.stat().st_size > LARGEST:
        raise DataError(f"{path}: larger than {LARGEST >> 20} MB, which no study, prompt or rubric is")
    text = read_text(path)
    try:
        return parse_yaml(text)
    except MalformedError as error:
        raise DataError(f"{path}: not valid YAML: {error}") from None


def parse_yaml(text: str) -> Any:
    """The value of a YAML text: mappings, lists, texts, numbers, true and false.

    As in YAML 1.2 `no`, `on`, `2024-03-01`, `12:30` and `010` are texts, not something else that people did not write.
    Raises MalformedError for a text that is none, a key that stands twice, tags, and aliases without end.
    """
    try:
        return copy.deepcopy(_loaded(text))
    except yaml.YAMLError as error:
        raise MalformedError(str(error)) from None
    except RecursionError:
        raise MalformedError("nested too deep") from None
    except ValueError:  # int() takes 4300 digits
        raise MalformedError("a number with more digits than can be read") from None


@functools.lru_cache(maxsize=32)
def _loaded(text: str) -> Any:
    """The value of a text; a command reads its rubric a dozen times."""
    _look_through(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)


_Level = tuple[str | None, int]  # anchor, and values so far, of what is not ended yet


def _look_through(text: str) -> None:
    """Refuse what would take without end to read, before it is read."""
    sizes: dict[str, int] = {}  # values below each anchor, with aliases written out
    within: list[_Level] = [(None, 0)]
    event: Any  # PyYAML's stubs know neither marks nor values
    for event in yaml.parse(text, Loader=_Loader):
        where = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = within.pop()
            _add(within, anchor, size, sizes, where)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise MalformedError(f"{where}: *{event.anchor} names nothing that ends before it")
            _add(within, None, sizes[event.anchor], sizes, where)
        elif isinstance(event, yaml.NodeEvent):
            tag = getattr(event, "tag", None)
            if tag not in (None, "!"):
                raise MalformedError(f"{where}: tags such as {tag} are not read; write the value alone")
            if isinstance(event, yaml.CollectionStartEvent):
                within.append((event.anchor, 1))
                if len(within) > DEEPEST:
                    raise MalformedError(f"{where}: nested too deep")
                continue
            value = getattr(event, "value", "")
            if "\0" in value or not _encodes(value):
                raise MalformedError(f"{where}: holds what is not text (a null, or half a character)")
            _add(within, event.anchor, 1, sizes, where)


def _add(within: list[_Level], anchor: str | None, size: int, sizes: dict[str, int], where: str) -> None:
    """Count what ended, for its anchor and for what it stands in."""
    if anchor is not None:
        sizes[anchor] = size
    outer, before = within[-1]
    if before + size > MOST:
        raise MalformedError(f"{where}: more than {MOST} values, its aliases written out")
    within[-1] = (outer, before + size)


_TAG = "tag:yaml.org,2002:"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader (LibYAML's, where it is there), strict about keys that stand twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            if isinstance(key, Hashable):
                seen.add(key)
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
