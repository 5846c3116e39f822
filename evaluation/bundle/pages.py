"""What a Parquet file's pages come to when they are read, by the pages' own headers: a footer may say anything.

Arrow asks for memory by these headers and refuses a page that holds more, so that their sum is what reading takes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_PLAIN = (0, 2, 3, 4, 8)  # PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY; others repeat parts of values
_LONGEST = 1 << 20  # bytes of a footer
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8  # fields of a page's header


def sizes(file: pq.ParquetFile, content: bytes, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(values, bytes) of each page of these columns. Raises ArrowInvalid for what no bundle has."""
    for group in range(file.metadata.num_row_groups):
        for place in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(place)
            if chunk.num_values > 0 and chunk.path_in_schema.split(".")[0] in columns:  # else Arrow reads no page
                width = max(file.schema.column(place).length or 0, 8)
                yield from _of_chunk(chunk, content, 0 if chunk.physical_type == "BYTE_ARRAY" else width)


def refuse_footer(content: bytes) -> None:
    """Raise ArrowInvalid for a footer that takes much memory to read."""
    if len(content) > 8 and int.from_bytes(content[-8:-4], "little") > _LONGEST:
        raise pa.ArrowInvalid(f"its footer is larger than {_LONGEST:,} bytes")


def refuse_type(kind: pa.DataType) -> None:
    """Raise ArrowInvalid for a type whose values can be larger than what stands for them."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    words = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_binary(kind))
    if not (any(words) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        raise pa.ArrowInvalid(f"it has a column of type {str(kind)[:60]}, which no bundle has")


def _of_chunk(chunk: pq.ColumnChunkMetaData, content: bytes, width: int) -> Iterator[tuple[int, int]]:
    at, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    at = dictionary if chunk.has_dictionary_page and dictionary and 0 < dictionary < at else at
    end = at + chunk.total_compressed_size
    if not 0 <= at <= end <= len(content):
        raise pa.ArrowInvalid("a column stands outside of the file")
    while at < end:
        header, at = _struct(content, at)
        at += _whole(header.get(3))
        page: Mapping[int, Any] = next((header[kind] for kind in (_DATA, _DICTIONARY, _DATA_V2) if kind in header), {})
        if page.get(4 if _DATA_V2 in header else 2, 0) not in _PLAIN:
            raise pa.ArrowInvalid("a column is packed in a way that no bundle is")
        values = _whole(page.get(1, 0))
        yield values, max(_whole(header.get(2)), values * width)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise pa.ArrowInvalid("a page's header is damaged")
    return value


def _struct(content: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """(fields by number, where they end) of a struct in Thrift's compact form, with what page headers have."""
    fields: dict[int, Any] = {}
    number = 0
    try:
        while head := content[at]:
            at += 1
            number, kind = number + (head >> 4), head & 15
            if not head >> 4:
                number, at = _integer(content, at)
            fields[number], at = _value(content, at, kind, depth)
    except IndexError:
        raise pa.ArrowInvalid("a page's header is cut off") from None
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _integer(content, at)
    if kind == 8:
        size, at = _varint(content, at)
        return None, at + size
    if kind == 12 and depth < 3:
        return _struct(content, at, depth + 1)
    skipped = {3: 1, 7: struct.calcsize("d")}.get(kind)
    if skipped is None:
        raise pa.ArrowInvalid("a page's header is damaged")
    return None, at + skipped


def _integer(content: bytes, at: int) -> tuple[int, int]:
    found, at = _varint(content, at)
    return (found >> 1) ^ -(found & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    raise pa.ArrowInvalid("a page's header is damaged")
