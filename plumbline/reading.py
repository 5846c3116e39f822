"""Read text, JSON and YAML that people or other programs wrote, and recognise a text's encoding from its bytes.

Any fault of a file (missing, not a file, not UTF-8, cut off, nested too deep, an infinite value) becomes one line that
names the file and the place in it.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import copy
import functools
import itertools
import json
import re
import stat
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from plumbline.errors import DataError, StudyError
from plumbline.importing import charset_normalizer

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
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark  # PyYAML's stubs do not know what marks hold
        location = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise MalformedError(f"{location}{'; '.join(filter(None, [error.problem, error.context]))}") from None
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


_PLACE, _QUOTED = re.compile(r"([\w-]+)(?:[.,:] ?| )"), re.compile("'([^']{1,100})'")
_NUMBERED = re.compile(r"\(line [0-9]+\)$")


def with_lines(path: Path, faults: Sequence[str]) -> list[str]:
    """Return faults of a YAML file, each behind the file's name and with the line that it is about, if it has one.

    A fault begins with its place (`sample.pairs: ...`); of what it quotes, the first that stands there has the line.
    """
    try:
        root: yaml.Node | None = yaml.compose(read_text(path), Loader=_Loader)
    except (OSError, DataError, yaml.YAMLError):
        root = None
    lines = [f"{path}: {fault}" for fault in faults]
    return [
        f"{line} (line {number})" if root and not _NUMBERED.search(line) and (number := _line(root, fault)) else line
        for line, fault in zip(lines, faults, strict=True)
    ]


def _line(node: yaml.Node, fault: str) -> int:
    """Return the line below a node that a fault is about; 0 if it is about the whole."""
    line, rest = 0, fault
    while (start := _PLACE.match(rest)) and (inner := dict(_inner(node)).get(start[1])):
        line, node, rest = inner[0], inner[1], rest[start.end() :]
    quoted = [word for word in _QUOTED.findall(rest) if word]
    below = list(_scalars(node))
    return next((number for word in quoted for name, number in below if name == word), line)


def _inner(node: yaml.Node) -> Iterator[tuple[str, tuple[int, yaml.Node]]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), (key.start_mark.line + 1, value)) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((str(index), (value.start_mark.line + 1, value)) for index, value in enumerate(node.value))


def _scalars(node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Yield the keys and values below a node with their lines, outer ones first."""
    level, seen = [node], set[int]()
    while level:
        further: list[yaml.Node] = []
        for part in level:
            if id(part) in seen:  # an alias
                continue
            seen.add(id(part))
            if isinstance(part, yaml.ScalarNode):
                yield str(part.value), part.start_mark.line + 1
            elif isinstance(part, yaml.MappingNode):
                further += itertools.chain.from_iterable(part.value)
            elif isinstance(part, yaml.SequenceNode):
                further += part.value
        level = further


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

_PIECE = 1 << 18
_SAMPLE = 1 << 16  # bytes of lines with other than plain letters
_NULLS = 0.2  # share of null bytes from which a file is in UTF-16
_LEAST = 12  # bytes beyond plain letters by which an encoding can be recognised
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
          codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
_NAMES = {"cp1252": "Windows-1252", "cp932": "Shift-JIS", "cp949": "EUC-KR", "euc_jp": "EUC-JP", "big5": "Big5"}
_FURTHER = ["cp932", "gb18030", "big5", "cp949", "euc_jp", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256",
            "koi8_r", "cp874"]  # fmt: skip
_WESTERN = re.compile("[À-ÖØ-öø-ÿŒœŠšŽž‘’“”–—…€£§°«»·´¿¡ºª\xa0]")
_LETTER, _STRETCH = re.compile(r"[^\x00-\x7f]"), re.compile(r"[^\x00-\x7f]+")


def encoding_of(path: Path) -> tuple[str, str]:
    """Return the encoding in which a file can be read, and a remark on it, empty for UTF-8. Raises DataError.

    UTF-8 and UTF-16 show themselves. Other encodings are told apart by the characters that they give: Western accents
    stand alone among plain letters, Japanese has kana, Korean has Hangul, Chinese has the frequent characters of its
    standard; charset-normalizer knows the rest.
    """
    try:
        refuse_no_file(path)
        with path.open("rb") as file:
            start = file.read(4096)
            file.seek(0)
            sample = _sample(file)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if not start:
        raise DataError(f"{path} is empty; export it again")
    for encoding in _candidates(start, sample):
        with contextlib.suppress(UnicodeDecodeError):
            _decode(path, encoding)
            name = _NAMES.get(encoding, encoding.upper().replace("_", "-"))
            if encoding.startswith("utf-8"):
                return encoding, ""
            if encoding.startswith("utf"):
                return encoding, f"read as {name}"
            return encoding, f"not UTF-8, so read as {name}; check its letters"
    raise DataError(f"{path} is cut off, or in an unknown encoding; save it again as CSV in UTF-8")


def _sample(lines: Iterator[bytes]) -> bytes:
    """Return the first lines with other than plain letters, without the last one: a file may be cut off."""
    sample, last = bytearray(), b""
    for line in lines:
        if not line.isascii():
            sample += last
            last = line[:_SAMPLE]
            if len(sample) > _SAMPLE:
                break
    return bytes(sample or last)


def _candidates(start: bytes, sample: bytes) -> Iterator[str]:
    """Yield the encodings that a file may have: the only one where its letters show it, else the likeliest first."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            yield encoding
            return
    if start.count(b"\0") > _NULLS * len(start):
        yield "utf-16-le" if start.find(b"\0") % 2 else "utf-16-be"
        return
    if b"\0" in start:
        yield "latin-1"  # which has every byte, so that the null is named
    yield "utf-8"
    for encoding, test, least in (
        ("utf-8", bool, 0.0), ("cp1252", _is_western, 0.9),
        ("cp932", _is_kana, 0.1), ("euc_jp", _is_kana, 0.1),
        ("euc_kr", lambda letter: "\uac00" <= letter <= "\ud7a3" or letter in "·…“”‘’", 0.95),
        ("gb2312", _is_frequent("gb2312", 0xD7), 0.8), ("big5", _is_frequent("big5", 0xC6), 0.8),
    ):  # fmt: skip
        if _share(sample, encoding, test) > least:
            yield {"euc_kr": "cp949", "gb2312": "gb18030"}.get(encoding, encoding)
            return
    if sum(byte > 127 for byte in sample) >= _LEAST:
        yield from (match.encoding for match in charset_normalizer.from_bytes(sample, cp_isolation=_FURTHER))
    yield "cp1252"


def _share(sample: bytes, encoding: str, test: Callable[[str], bool]) -> float:
    """Return the share of stretches beyond plain letters that are as expected; 0 for bytes of no such encoding."""
    try:
        stretches = (_STRETCH if test is _is_western else _LETTER).findall(sample.decode(encoding))
    except UnicodeDecodeError:
        return 0
    expected = sum(len(stretch) for stretch in stretches if test(stretch))
    return expected / max(1, sum(map(len, stretches)))


def _is_western(stretch: str) -> bool:
    """Return whether letters may be accents among plain letters: no more than two stand together."""
    return len(stretch) < 3 and all(map(_WESTERN.fullmatch, stretch))


def _is_kana(letter: str) -> bool:
    return "\u3041" <= letter <= "\u30fe"


def _is_frequent(encoding: str, last: int) -> Callable[[str], bool]:
    """Return whether a letter is in the first level of a Chinese standard, or a sign of its first rows."""

    def test(letter: str) -> bool:
        return letter.encode(encoding)[0] <= last

    return test


def _decode(path: Path, encoding: str) -> None:
    """Raise DataError for a null character, and UnicodeDecodeError for bytes that the encoding lacks."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            text = decoder.decode(piece)
            if "\0" in text:
                line += text.count("\n", 0, text.index("\0"))
                raise DataError(f"{path} contains a null character (line {line}), so it is not text; save it as UTF-8")
            line += text.count("\n")
    decoder.decode(b"", final=True)
