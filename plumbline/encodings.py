"""The encoding of a text file from elsewhere, recognised from its bytes.

UTF-8 and UTF-16 show themselves. Other encodings are told apart by the characters that they give: Western accents
stand alone among plain letters, Japanese has kana, Korean has Hangul, Chinese has the frequent characters of its
standard; charset-normalizer knows the rest.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from plumbline.errors import DataError
from plumbline.reading import refuse_no_file

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
    """Return the encoding in which a file can be read, and a remark on it, empty for UTF-8. Raises DataError."""
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
        ("cp932", _is_kana, 0.1), ("euc_jp", _is_kana, 0.1), ("euc_kr", _is_hangul, 0.95),
        ("gb2312", _is_frequent("gb2312", 0xD7), 0.8), ("big5", _is_frequent("big5", 0xC6), 0.8),
    ):  # fmt: skip
        if _share(sample, encoding, test) > least:
            yield {"euc_kr": "cp949", "gb2312": "gb18030"}.get(encoding, encoding)
            return
    if sum(byte > 127 for byte in sample) >= _LEAST:
        from charset_normalizer import from_bytes  # noqa: PLC0415 (takes a quarter of a second)

        yield from (match.encoding for match in from_bytes(sample, cp_isolation=_FURTHER))
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


def _is_hangul(letter: str) -> bool:
    return "\uac00" <= letter <= "\ud7a3" or letter in "·…“”‘’"


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
