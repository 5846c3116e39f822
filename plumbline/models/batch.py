"""Ask a chat server through files, for batch APIs that take OpenAI's (docs/howto/batch.md).

A run writes each request that has no answer into a file, and its text ends unanswered. The next run reads the answers
in the provider's files as if the server had just given them, and writes what follows from them: a second call, another
attempt. A database beside the journals keeps the requests that are out, and answers until every text has ended, so
that no second output file and no killed run pays twice. A request is known by a hash of its body, seed and attempt.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import secrets
import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.errors import DataError, ServiceError, StudyError, TextFailedError, TextUnansweredError, read_each
from plumbline.identity import identity
from plumbline.models.chat import Attempt, Completion
from plumbline.models.openai import REFUSALS, ChatServer, PassingError
from plumbline.models.servers import complaint, error_status
from plumbline.reading import refuse_no_file
from plumbline.resources import private
from plumbline.store import atomic, make_folder, writing
from plumbline.study import Study
from plumbline.study.engines import ServerSpec
from plumbline.words import count

URL = "/v1/chat/completions"
MOST, LARGEST = 50_000, 100_000_000  # requests and bytes of a file: Together's limits; others take at least as much
IN_BATCH = "its request is in a file for a batch"
AGAIN = "its request is in a file once more"
TIMES = 2  # how often a request is written whose paid answers cannot be used
# status: the answer's, whose body is `content`; or the request is out, waits in `content` to be written, or was lost.
_OUT, _NEW, _LOST = 0, -1, -2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS batch (name TEXT);
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, times INTEGER, file TEXT, status INTEGER, content BLOB);
"""
_ANSWERS, _TWICE, _FOREIGN = "answers", "read before or doubled", "of another study or batch"
_LOST_ONES, _NONE = "not done, to be asked again", "cut off or without an answer"


class BatchRequests:
    """A study's requests in files for a batch API, and their answers so far; new ones go into `file`."""

    def __init__(self, path: Path, file: Path | None = None) -> None:
        """Open the database at `path`. Raises DataError if it is damaged."""
        self.path, self.file = path, file
        make_folder(path.parent)
        open(path, "ab", opener=private).close()
        self._rows = sqlite3.connect(path)
        try:
            with writing(path), self._rows:
                self._rows.executescript(_SCHEMA)
                if not self._rows.execute("SELECT 1 FROM batch").fetchone():
                    self._rows.execute("INSERT INTO batch VALUES (?)", (secrets.token_hex(4),))
            (self._name,) = self._rows.execute("SELECT name FROM batch").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StudyError(f"{path} is being written by another run; wait until that ends") from None
            raise DataError(
                f"{path} is damaged ({error}); restore it, or delete it and pay for its answers again"
            ) from None

    @property
    def some(self) -> bool:
        """Whether there are requests, out or answered."""
        return self._rows.execute("SELECT 1 FROM requests").fetchone() is not None

    @property
    def out(self) -> Counter[str]:
        """The number of requests without an answer, by file."""
        query = "SELECT file, count(*) FROM requests WHERE status = ? GROUP BY file ORDER BY min(rowid)"
        return Counter(dict(self._rows.execute(query, (_OUT,)).fetchall()))

    def answer(self, attempt: Attempt, body: bytes) -> tuple[int, bytes, int]:
        """Return status and body of the answer to a request, status 0 without one, and how often it was written."""
        query = "SELECT status, content, times FROM requests WHERE id = ? AND status > 0"
        status, content, times = self._rows.execute(query, (self._id(attempt, body),)).fetchone() or (0, b"", 0)
        return status, content, times

    def add(self, attempt: Attempt, body: bytes) -> None:
        """Note a request for the file, unless it is out."""
        number = self._id(attempt, body)
        query = "SELECT times, status FROM requests WHERE id = ?"
        times, status = self._rows.execute(query, (number,)).fetchone() or (0, _LOST)
        if status in (_OUT, _NEW):
            return
        # up to 64 letters, digits and hyphens; `times` tells the line of a request that was lost from the later one's
        head = json.dumps({"custom_id": f"{number}-{times + 1}", "method": "POST", "url": URL, "body": 0})[:-2]
        row = number, times + 1, "", _NEW, head.encode() + body + b"}\n"
        self._rows.execute("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)", row)

    def write(self) -> None:
        """Write the noted requests, if any, into the file, or into numbered ones that a batch can take.

        They are out before a file has its name: a killed run may leave requests that were never sent, but no file of
        requests that the next run writes again. Raises StudyError if such a file exists.
        """
        if (file := self.file) is None:
            return
        noted = "FROM requests WHERE status = ? ORDER BY rowid"
        numbers, last, size = list[int](), list[int](), 0  # of each file
        for row, length in self._rows.execute(f"SELECT rowid, length(content) {noted}", (_NEW,)):
            if not numbers or numbers[-1] == MOST or size + length > LARGEST:
                numbers, last, size = [*numbers, 0], [*last, 0], 0
            numbers[-1], last[-1], size = numbers[-1] + 1, row, size + length
        if not numbers:
            return
        files = (
            [file.with_stem(f"{file.stem}-{part}") for part in range(1, len(numbers) + 1)]
            if len(numbers) > 1
            else [file]
        )
        for name in files:
            refuse_file(name)
        contents = self._rows.execute(f"SELECT content {noted}", (_NEW,))
        with contextlib.ExitStack() as written:
            for name, number in zip(files, numbers, strict=True):
                lines = (line for (line,) in itertools.islice(contents, number))
                written.enter_context(atomic(name)).writelines(lines)
            with writing(self.path), self._rows:
                for name, row in zip(files, last, strict=True):
                    query = "UPDATE requests SET status = ?, file = ?, content = NULL WHERE status = ? AND rowid <= ?"
                    self._rows.execute(query, (_OUT, str(name), _NEW, row))

    def read(self, files: Sequence[Path], key: str, *, lost: bool = False) -> list[str]:
        """Keep the answers in a provider's files; return a line on each file, without the `key`.

        If the batch was `lost`, requests that are out then are asked again. Raises DataError for files without any
        answer to these requests; then nothing is kept.
        """
        with writing(self.path), self._rows:
            lines = read_each(files, lambda file: self._read(file, key))
            if lost:
                self._rows.execute("UPDATE requests SET status = ? WHERE status = ?", (_LOST, _OUT))
        return lines

    def close(self) -> None:
        """Close the database; what was noted and not written is dropped."""
        self._rows.close()

    def _id(self, attempt: Attempt, body: bytes) -> str:
        return f"{self._name}-{identity('batch-request-v1', attempt.seed, attempt.number, body.decode())}"

    def _read(self, file: Path, key: str) -> str:
        """Keep the answers of one file, and return how many lines are what."""
        counts, examples = Counter[str](), {_ANSWERS: "", _TWICE: ""}
        for number, line in _json_lines(file):
            status, content = _answer_of(line)
            if status != 200:  # servers may repeat the key, and answers are kept
                content = content.replace(key.encode(), b"(the key)")
            custom_id = str(line.get("custom_id")).encode(errors="replace").decode()
            kind = self._kind(custom_id, status, content)
            counts[kind] += 1
            if kind not in examples:
                words = f"line {number}" if kind in (_FOREIGN, _NONE) else complaint(content, key)
                examples[kind] = f" ({words})"
        if counts and not counts.keys() - {_FOREIGN, _NONE}:
            fault = (
                f"{file}: none of its {count(counts.total(), 'line')} is an answer to a request of this study's batch"
            )
            raise DataError(f"{fault}; name the output file that the provider made of the requests")
        parts = [f"{number:,} {kind}{examples[kind]}" for kind, number in counts.items()]
        return f"{file}: {', '.join(parts) or 'no line'}"

    def _kind(self, custom_id: str, status: int, content: bytes) -> str:
        """Keep the answer of a line, unless there is one or the request was written again; return the line's kind."""
        number, _, times = custom_id.rpartition("-")
        row = self._rows.execute("SELECT times, status FROM requests WHERE id = ?", (number,)).fetchone()
        if not status and not content:
            return _NONE
        if row is None:
            return _FOREIGN
        if row[1] == 200 or (status != 200 and times != str(row[0])):
            return _TWICE
        query = "UPDATE requests SET status = ?, content = ? WHERE id = ?"
        self._rows.execute(query, (status or _LOST, content if status else None, number))
        return _ANSWERS if status == 200 else f"of status {status}" if status else _LOST_ONES


def _json_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and content of each line that is not blank; an empty content for one that is no JSON object."""
    try:
        refuse_no_file(file)
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                content = None
                with contextlib.suppress(ValueError, RecursionError):
                    content = json.loads(line)
                if line.strip():
                    yield number, content if isinstance(content, dict) else {}
    except FileNotFoundError:
        raise DataError(f"no file {file}; save the batch's output there, or name it by --batch-output") from None


def _answer_of(line: dict[str, Any]) -> tuple[int, bytes]:
    """Return the status and body of an answer; status 0 and the error for a request that was not done.

    Some servers have the answer itself for `response`, or no body beside an error, or an error for a good answer.

    >>> _answer_of({"response": {"status_code": 200, "body": {"choices": []}}, "error": None})
    (200, b'{"choices": []}')
    >>> _answer_of({"response": {"status_code": 200, "body": {"error": {"code": 503}}}})
    (503, b'{"error": {"code": 503}}')
    >>> _answer_of({"response": None, "error": {"code": "batch_expired"}})
    (0, b'{"error": {"code": "batch_expired"}}')
    """
    response, error = line.get("response"), line.get("error")
    response = response if isinstance(response, dict) else {}
    body = response if "choices" in response else response.get("body")
    status = str(error_status(body) or response.get("status_code") or (200 if body else error_status(line)))
    if not body and error:
        body = error if isinstance(error, dict) and "error" in error else {"error": error}
    text = body if isinstance(body, str) else json.dumps(body) if body else ""
    return int(status) if re.fullmatch(r"[1-9]\d\d", status) else 0, text.encode(errors="replace")


@dataclass
class BatchServer(ChatServer):
    """A chat server that is asked through files for its batch API, or at once if the requests have no file."""

    requests: BatchRequests = field(init=False)
    _reading: bool = field(default=False, init=False)  # an answer in a file

    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the answer in a batch's files, or note the request and raise TextUnansweredError.

        What a server asked at once would be asked again for is asked for again; an answer of status 200 that cannot be
        used is paid, so only once: after it the text fails.
        """
        body, reason = self._body(message, attempt, labels), ""
        status, content, times = self.requests.answer(attempt, body)
        if status:
            self._reading = True
            try:
                return self.read(status, content, labels)
            except (PassingError, ServiceError, TextUnansweredError) as fault:
                reason = ": ".join(filter(None, fault.args)) if status == 200 else ""
            finally:
                self._reading = False
        if self.requests.file is None:
            return await super().ask(message, attempt, labels)
        if reason and times >= TIMES:
            raise TextFailedError(f"{reason}, asked {times} times")
        self.requests.add(attempt, body)
        raise TextUnansweredError(f"{reason}; {AGAIN}" if reason else IN_BATCH)

    def _concerns_all(self, words: str, most: int = REFUSALS) -> bool:
        """Return False for answers in files: all are there, so none is asked for in vain."""
        return self.requests.file is None and not self._reading and super()._concerns_all(words, most)


def batch_path(study: Study) -> Path:
    """Return the database of a study's requests in batches, on this machine; each generator has its own."""
    return study.scratch / f".batch-{identity('batch-v1', *study.generator.identity())[:16]}"


def batch_server(study: Study, file: Path | None = None) -> BatchServer:
    """Return a study's generator as it is asked through files. Raises StudyError for one that is no server."""
    spec = study.generator
    if not isinstance(spec, ServerSpec):
        raise StudyError(f"{study.file}: generator.kind is {spec.kind!r}; batch files are for one of kind openai")
    server = BatchServer.open(spec, study, "generator", {})
    server.requests = BatchRequests(batch_path(study), file)
    return server


def requests_out(study: Study) -> Counter[str]:
    """Return the number of a study's requests that are in a batch without an answer, by file."""
    if not batch_path(study).exists():
        return Counter()
    with contextlib.closing(BatchRequests(batch_path(study))) as requests:
        return requests.out


def refuse_batch(study: Study) -> None:
    """Raise StudyError if a study has a batch that has not ended.

    Other processes do not know its answers, and --again would ask for them once more.
    """
    if batch_path(study).exists():
        with contextlib.closing(BatchRequests(batch_path(study))) as requests:
            if requests.some:
                line = f"{study.name!r} has a batch that has not ended"
                raise StudyError(f"{line}; run without --again, --ray and --shard until it has")


def refuse_out(study: Study) -> None:
    """Raise StudyError if requests of a study are out: asked otherwise they would be paid twice."""
    if out := requests_out(study):
        way = f"read its output and error files by `{study.command('generate')} --batch-file NEW --batch-output FILE`"
        line = f"a batch has {count(out.total(), 'request')} of {study.name!r} without an answer ({', '.join(out)})"
        raise StudyError(f"{line}: {way}; if it failed or was never sent, add --batch-lost")


def refuse_file(file: Path) -> None:
    """Raise StudyError for a file that exists: it may be in a batch, or hold answers."""
    if file.exists():
        raise StudyError(f"--batch-file {file}: exists already; name a new file")


def next_step(study: Study) -> tuple[str, str]:
    """Return the options of the `generate` that reads a batch's answers and goes on, and what to do before it."""
    out = requests_out(study)
    file = Path([*out][-1] if out else "requests.jsonl")
    base, _, number = file.stem.rpartition(".")
    base, first = (base, int(number) + 1) if base and number.isdecimal() else (file.stem, 2)
    names = (file.with_stem(f"{base}.{number}") for number in itertools.count(first))
    options = ["--batch-file", str(next(name for name in names if not name.exists()))]
    if not out:
        return shlex.join(options), "goes on with the batch"
    outputs = [str(Path(name).with_stem(f"{Path(name).stem}.output")) for name in out]
    words = (
        f"{count(out.total(), 'request')} in {', '.join(out)}: send each file as a batch for {URL}, and save its output"
        f" as {', '.join(outputs)} (name its error file too; --batch-lost asks again what has no answer)"
    )
    return shlex.join([*options, "--batch-output", *outputs]), words
