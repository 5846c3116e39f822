"""A bundle open for reading: one zip file whose members are the platform's records.

A bundle is written so that equal contents give equal bytes, and read member by member without unpacking. As somebody
else made it, names, kinds and sizes are checked before reading, sizes again while reading, and each member's hash
against the manifest. No name in the archive decides where anything is written.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import shutil
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ValidationError

from annotation.campaign_records import CampaignData
from annotation.records import Decision, Group, Look, PairMean, RuleSet, Supply, Verdict, Wave
from annotation.rubric import Rubric
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.rules import with_rules_fixed
from evaluation.bundle import records, tables
from evaluation.bundle.records import AGAIN, BundledOutput, BundledTransformation, BundleManifest, read_manifest
from plumbline.errors import DataError, StudyError
from plumbline.reading import MalformedError, parse_json, refuse_no_file
from plumbline.records import Pair, Rating, Record, Score, Text
from plumbline.store import as_models, joined
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.transformations import EIGHT, Transformation, refuse_mixed_up

_OF_GENERATOR = ("model", "revision", "sampling")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Bundle:
    """One bundle. Its members are well-formed; `evaluation.bundle.check` tells whether they are as exported."""

    archive: Archive
    manifest: BundleManifest
    identity: str  #: hash of the manifest, and thereby of everything

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Open a bundle's file. Raises DataError if it is not a bundle, is damaged, or has a later version."""
        archive = Archive(path)
        try:
            manifest, identity = read_manifest(archive.words(MANIFEST), str(path))
        except DataError:
            archive.close()
            raise
        return cls(archive, manifest, identity)

    @property
    def path(self) -> Path:
        """The bundle's file."""
        return self.archive.path

    @property
    def short(self) -> str:
        """The first digits of the identity."""
        return self.identity[:8]

    def has(self, name: str) -> bool:
        """Return whether there is a member of this name."""
        return name in self.manifest.members

    def table(self, name: str, record: type[Record], columns: Sequence[str] = ()) -> pa.Table:
        """Return a member's rows. Raises DataError for a damaged table or one of another record."""
        return tables.checked(self.archive.read(name), self._where(name), record, self.archive.charge, columns)

    def words(self, name: str) -> dict[str, Any]:
        """Return a member that is a JSON object. Raises DataError for another one."""
        content = self._json(name)
        if not isinstance(content, dict):
            raise DataError(f"{self._where(name)} is not a JSON object; {AGAIN}")
        return content

    def models(self, name: str, model: type[M]) -> list[M]:
        """Return a member's records. Raises DataError for damaged JSON or other records."""
        return as_models(self._json(name), self._where(name), model, AGAIN)

    @functools.cached_property
    def transformations(self) -> dict[str, BundledTransformation]:
        """The making of each transformation, in the study's order."""
        rows = self.models(records.TRANSFORMATIONS, BundledTransformation)
        return {str(row.definition.get("name", "")): row for row in rows}

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdicts; for older bundles, `rules_fixed` is added."""
        if any(verdict.rules_fixed for verdict in self._verdicts):
            return self._verdicts
        return with_rules_fixed(self._verdicts, self.evidence.rules_fixed[0])

    @functools.cached_property
    def _verdicts(self) -> list[Verdict]:
        return self.models(records.VERDICTS, Verdict)

    @functools.cached_property
    def groups(self) -> list[Group]:
        """The agreement of groups: HTEB's Table 2."""
        return self.models(records.AGREEMENT, Group)

    @functools.cached_property
    def means(self) -> pd.DataFrame:
        """Each pair's means."""
        frame: pd.DataFrame = self.table(records.MEANS, PairMean).to_pandas()
        return frame

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """The maker's scores; no rows without any."""
        parts = [self.table(records.SCORES, Score)] if self.has(records.SCORES) else []
        return joined(parts, Score)

    @functools.cached_property
    def rubric(self) -> Rubric:
        """The raters' questions, word for word."""
        return self._model(records.RUBRIC, Rubric)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """The records that the verdicts follow from, from the sample to the rules."""
        decisions = self.models("decisions.json", Decision)
        rated = [self.table(name, Rating) for name in (records.RATINGS, records.CONTROL_RATINGS)]
        self._refuse_off_scale(rated[0])
        pairs = [self.table(name, Pair) for name in (records.PAIRS, records.CONTROLS)]
        return Evidence(self.study()).changed(
            rubric=self.rubric,
            collected=CampaignData.of_tables(pairs, rated, decisions),
            decided=decisions,
            rules=self.models("rules.json", RuleSet),
            supply=self.models("sample.json", Supply),
            waves=self.models("waves.json", Wave),
            looks=self.models("looks.json", Look),
            offered=all(verdict.rules_fixed != "late" for verdict in self._verdicts),
        )

    def texts(self, dataset: str) -> pa.Table:
        """Return a data set's texts with positions and hashes; those that may not be shared are empty."""
        return self.table(records.texts_of(dataset), Text)

    def dataset_tables(self, dataset: str) -> dict[str, pa.Table]:
        """Return the rows of a local data set by part: train and test, passages, judgements."""
        names = [name for name in self.manifest.members if name.startswith(f"data/{dataset}/")]
        return {
            name.rpartition("/")[2].removesuffix(".parquet"): tables.from_parquet(
                self.archive.read(name), self._where(name), self.archive.charge
            )
            for name in names
        }

    def outputs(self, transformation: str, seed: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return a unit's outputs (rows of `BundledOutput`)."""
        return self.table(records.outputs_of(transformation, seed), BundledOutput, columns)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The study's settings in the bundle."""
        settings: dict[str, Any] = self._json(records.STUDY)
        if not _of_a_study(settings):
            raise DataError(f"{self._where(records.STUDY)} is not a study; {AGAIN}")
        for part, allowed in records.OF_STUDY.items():
            values = settings if part == "study" else settings.get(part, {})
            for entry in values if isinstance(values, list) else [values]:
                if strange := next((key for key in entry if key not in allowed), ""):
                    raise DataError(
                        f"{self._where(records.STUDY)} has an unexpected setting {strange[:80]!r} in {part}; {AGAIN}"
                    )
        return settings

    def study(self, models: Sequence[Any] = (), exports: Path | None = None, name: str = "") -> Study:
        """Return the study of the bundle, with these embedding models (as in a study file) and folder for records.

        No function, file or server that it names is used. Raises DataError if the settings are not a study.
        """
        settings = {**self.settings, **({"name": name} if name else {})}
        scored = settings.pop("evaluation", {})
        if models:
            settings["evaluation"] = {**scored, "models": list(models)}
        path = str(self.archive.path.parent / "outputs")
        made_by = {name: value for name, value in self.settings.get("generator", {}).items() if name in _OF_GENERATOR}
        settings["generator"] = {**made_by, "kind": "recorded", "path": path}
        if "judges" in settings:  # their judgements are in the bundle
            settings["judges"] = [_recorded_judge(judge, path) for judge in settings["judges"]]
            settings["judge_pool"] = "all"
        try:
            defined = {name: transformation for name, transformation in self._kinds().items() if name not in EIGHT}
            refuse_mixed_up(defined)
            study = Study.model_validate(settings, context=defined)
        except ValidationError as error:
            raise DataError(f"{self._where(records.STUDY)}: {first_complaint(error)}; {AGAIN}") from None
        except StudyError as error:
            raise DataError(f"{self.path}: {error}; {AGAIN}") from None
        study._own, study._file = defined, self.path.resolve()
        if exports is not None:
            study._exports = exports
        return study

    def _refuse_off_scale(self, ratings: pa.Table) -> None:
        """Raise DataError for a rating outside its question's scale."""
        for question in self.rubric.rating_names():
            values = ratings.filter(pc.equal(ratings["question"], question))["value"].drop_null()
            points = [value for value in pc.unique(values).to_pylist() if not math.isnan(value)]
            if off := sorted(set(points) - set(self.rubric.scale_of(question))):
                raise DataError(
                    f"{self._where(records.RATINGS)} has a rating {off[0]:g} for {question!r}, outside its scale;"
                    f" {AGAIN}"
                )

    def _kinds(self) -> dict[str, Transformation]:
        return {
            name: Transformation.model_validate(transformation.definition)
            for name, transformation in self.transformations.items()
        }

    def _model(self, name: str, model: type[M]) -> M:
        try:
            return model.model_validate(self._json(name))
        except ValidationError as error:
            raise DataError(f"{self._where(name)}: {first_complaint(error)}; {AGAIN}") from None

    def _json(self, name: str) -> Any:
        try:
            return parse_json(self.archive.words(name))
        except MalformedError as error:
            raise DataError(f"{self._where(name)} is damaged ({error}); {AGAIN}") from None

    def _where(self, name: str) -> Path:
        return self.path / name


def _of_a_study(settings: Any) -> bool:
    """Return whether settings have the parts that are read beyond what a study's own model checks."""
    if not isinstance(settings, dict):
        return False
    if not all(isinstance(settings.get(part, {}), dict) for part in ("generator", "raters", "evaluation")):
        return False
    models = settings.get("evaluation", {}).get("models", [])
    return all(
        isinstance(named, list)
        and all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in named)
        for named in (models, settings.get("judges", []))
    )


MANIFEST = "manifest.json"
MOST = 20_000  # members
LARGEST = 8 * 2**30  # bytes of all members; 200,000 texts in 24 variants are a tenth of it
LARGEST_READ = 2 * 2**30  # bytes of a member read at once
LARGEST_WORDS = 64 * 2**20  # of JSON
# The most memory for all members of a bundle: a constant, and a factor for each of its bytes.
CELLS, CELLS_A_BYTE = 250_000, 2.4  # the largest tables of ratings have 2.3 a byte
UNPACKED, UNPACKED_A_BYTE = 64 * 2**20, 32
DEEPEST = 100  # levels of JSON
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}(/[A-Za-z0-9][A-Za-z0-9._-]{0,150}){0,4}")
# All of JSON except what separates its values.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\[\]{},:"]++|"', re.DOTALL)
_KINDS = (".json", ".parquet", ".html")
_PIECE = 1 << 20
_AS_READ = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class Archive:
    """A bundle's file, open for reading. Raises DataError if it is not a bundle or has unexpected members."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            refuse_no_file(path)
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise DataError(f"no file {path}; `plumbline bundle export` makes a bundle from a study") from None
        except _AS_READ as error:
            raise self.bad(f"is cut off, or not a bundle ({error})") from None
        size = path.stat().st_size
        self._cells, self._unpacked = CELLS + int(CELLS_A_BYTE * size), UNPACKED + UNPACKED_A_BYTE * size
        self._too_large = ""  # the first member that exceeded the limit
        self._charged: dict[str, tuple[int, int]] = {}
        self._members = {member.filename: member for member in self._zip.infolist()}
        try:
            self._refuse_strange()
        except DataError:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """The members except the manifest, in order."""
        return sorted(set(self._members) - {MANIFEST})

    def size(self, name: str) -> int:
        """Return a member's bytes, as the archive declares them."""
        return self._members[name].file_size

    def read(self, name: str, limit: int = LARGEST_READ) -> bytes:
        """Return a member's bytes. Raises DataError if it is missing, damaged, or larger than `limit`."""
        return b"".join(self._pieces(name, limit))

    def sha256(self, name: str) -> str:
        """Return the hash of a member, read in pieces. Raises as `read`."""
        digest = hashlib.sha256()
        for piece in self._pieces(name, LARGEST):
            digest.update(piece)
        return digest.hexdigest()

    def charge(self, name: str, cells: int, size: int) -> None:
        """Count a member's memory. Raises DataError if all need more than a bundle of this size may."""
        before = self._charged.get(name, (0, 0))
        self._charged[name] = after = max(before[0], cells), max(before[1], size)
        self._cells -= after[0] - before[0]
        self._unpacked -= after[1] - before[1]
        if self._cells < 0 or self._unpacked < 0:
            self._too_large = self._too_large or name.removeprefix(f"{self.path}/")
            raise self.bad(f"needs more memory for {self._too_large} than a bundle of its size may use")

    def words(self, name: str) -> bytes:
        """Return a member that is JSON. Raises as `read`, and for JSON that is too large or nested too deep."""
        content = self.read(name, LARGEST_WORDS)
        marks = _MARKS.sub(b"", content)
        self.charge(str(self.path / name), len(marks), len(content))
        depth = 0
        for mark in marks:
            depth += (mark in b"[{") - (mark in b"]}")
            if depth > DEEPEST:
                raise self.bad(f"has {name} with JSON nested too deeply")
        return content

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def bad(self, what: str) -> DataError:
        """Return the error about this file."""
        return DataError(f"{self.path} {what}; get it again from its source")

    def _pieces(self, name: str, limit: int) -> Iterator[bytes]:
        if name not in self._members:
            raise self.bad(f"lacks {name}")
        remaining = min(limit, self.size(name))
        if self.size(name) > limit:
            raise self.bad(f"has {name} with {self.size(name):,} bytes; at most {limit:,} are read")
        try:
            with self._zip.open(self._members[name]) as file:
                while piece := file.read(_PIECE):
                    remaining -= len(piece)
                    if remaining < 0:
                        raise self.bad(f"has more bytes in {name} than it declares")
                    yield piece
        except _AS_READ as error:
            raise self.bad(f"is damaged in {name} ({error})") from None
        if remaining and limit >= self.size(name):
            raise self.bad(f"has fewer bytes in {name} than it declares")

    def _refuse_strange(self) -> None:
        listed = self._zip.infolist()
        if len(listed) > MOST:
            raise self.bad(f"has {len(listed):,} members; at most {MOST:,} are read")
        for member in listed:
            name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
            plain = _NAME.fullmatch(name) and ".." not in name and Path(name).suffix in _KINDS
            if not plain or "\0" in getattr(member, "orig_filename", name):
                raise self.bad(f"has an unexpected member {name[:80]!r}")
            if kind not in (0, stat.S_IFREG):
                raise self.bad(f"has a member {name} that is not a file (but a link, for example)")
            if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.bad(f"has {name} encrypted or compressed in an unexpected way")
        if len(listed) > len(self._members):
            raise self.bad("has two members with the same name")
        if (total := sum(member.file_size for member in listed)) > LARGEST:
            raise self.bad(f"has {total:,} bytes when unpacked; at most {LARGEST:,} are read")
        if total > self._unpacked:
            raise self.bad(
                f"has {total:,} bytes when unpacked; at most {self._unpacked:,} are read from a file of its size"
            )
        if MANIFEST not in self._members:
            raise self.bad(f"has no {MANIFEST}: it is empty, or not a bundle")


class Writer:
    """Writes a bundle: members in the order in which they are added, without times and owners."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self.members: dict[str, tuple[str, int]] = {}
        """Hash and number of bytes of each member."""

    def add(self, name: str, content: bytes | memoryview) -> None:
        """Add a member. Compressed content (Parquet) is stored as it is."""
        member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        member.create_system, member.external_attr = 3, (stat.S_IFREG | 0o644) << 16
        member.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
        self._zip.writestr(member, content, compresslevel=6)
        self.members[name] = (hashlib.sha256(content).hexdigest(), len(content))

    def close(self) -> None:
        """Finish the archive."""
        self._zip.close()


_SECONDS = 120


def signature_of(path: Path) -> Path:
    """Return the path of a bundle's signature: beside it, as minisign writes it."""
    return path.with_name(f"{path.name}.minisig")


def check_signature(path: Path, key: str) -> str:
    """Return minisign's message on a bundle's signature, with its trusted comment.

    `key` is a public key, or its file. Raises StudyError if minisign is not installed, DataError without a signature by
    this key.
    """
    signature, tool = signature_of(path), shutil.which("minisign")
    if not signature.is_file():
        raise DataError(f"{path} is not signed: no file {signature}; ask its maker for it, or leave out --key")
    if tool is None:
        raise StudyError("--key: checking signatures needs minisign; install it (apt install minisign)")
    by = ["-p", key] if Path(key).is_file() else ["-P", key]
    command = [tool, "-V", *by, "-x", str(signature), "-m", str(path)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StudyError(f"--key: {tool} cannot be run ({error})") from None
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[0]
        raise DataError(f"{path}: its signature is not valid for this key ({why}); do not use the file")
    return done.stdout.strip().replace("\n", "; ")


def _recorded_judge(judge: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a judge as a study file has it, with its answers in a file."""
    settings = {name: value for name, value in judge.items() if name not in ("kind", *_OF_ENGINE, *_OF_RETRY)}
    engine = {"kind": "recorded", "path": path, **{name: judge[name] for name in _OF_ENGINE if name in judge}}
    return {**settings, "engine": engine, "retry": {name: judge[name] for name in _OF_RETRY if name in judge}}


_OF_ENGINE = ("model", "revision")
_OF_RETRY = ("attempts", "temperature")
