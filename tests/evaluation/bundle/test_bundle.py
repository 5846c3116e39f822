"""The file: what is in it and what is not, that changes are named, and that hostile ones are refused in one line."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import faults, open_checked
from evaluation.bundle.export import export
from evaluation.bundle.source import BundleSource
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest
from plumbline.study import ROOT, Study
from tests import forks
from tests.commands import here
from tests.evaluation.bundle.samples import sample_study
from tests.shared import note_outputs

Edit = Callable[..., Path]
OUTPUTS = "outputs/paraphrasing/1337.parquet"


def with_rows(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[bytes], bytes]:
    """A change of a table's rows."""

    def edit(content: bytes) -> bytes:
        table = pq.read_table(io.BytesIO(content))
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(change(table.to_pandas()), schema=table.schema, preserve_index=False), sink)
        return sink.getvalue()

    return edit


def with_json(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """A change of what a JSON file says."""
    return lambda content: json.dumps(change(json.loads(content))).encode()


def renewed(path: Path) -> Path:
    """The archive with checksums that fit its files: what somebody does who knows the format."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if name != "SHA256SUMS"}
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (contents | {"SHA256SUMS": "".join(lines).encode()}).items():
            archive.writestr(name, content)
    return path


def said_of(path: Path) -> str:
    return "\n".join(f"{file} {what}" for file, what in faults(Bundle.open(path)))


def unpacked(bundle: Path, folder: Path) -> Path:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def test_the_same_study_gives_the_same_bytes_and_anybody_can_check_them(
    study: Study, bundle: Path, tmp_path: Path
) -> None:
    export(study, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_bytes() == bundle.read_bytes()
    folder = unpacked(bundle, tmp_path / "out")
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    assert Bundle.open(bundle).identity == hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest()


def words_in(name: str, content: bytes) -> str:
    """All that can be read in a file: of a table the words in its cells, as JSON has them."""
    if not name.endswith(".parquet"):
        return content.decode()
    return json.dumps(pq.read_table(io.BytesIO(content)).to_pylist(), ensure_ascii=False, default=str)


def test_nothing_in_it_names_a_person_or_a_place(study: Study, bundle: Path) -> None:
    archive = Bundle.open(bundle).archive
    text = "\n".join(words_in(name, archive.read(name)) for name in archive.names)
    for private in (str(study.file.parent), "my-weights", "I read", "the batch"):
        assert private not in text
    ratings = pd.read_parquet(io.BytesIO(archive.read("ratings.parquet")))
    assert ratings["rater_id"].str.fullmatch("simulated-[0-9a-f]{8}").all() and ratings["seconds"].isna().all()


def test_raters_with_names_and_comments_unasked_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sample_study(tmp_path)
    export(study, tmp_path / "a.zip", comments=True)
    assert Bundle.open(tmp_path / "a.zip").evidence.collected.plain_ratings["comment"].str.startswith("I read").all()
    monkeypatch.setattr("evaluation.bundle.export.is_pseudonym", lambda name: not name.endswith("1"))
    with pytest.raises(DataError, match="1 rater has no pseudonym"):
        export(study, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_texts_that_may_not_be_handed_on_stay_out_and_come_back_from_a_copy(tmp_path: Path) -> None:
    study = sample_study(tmp_path, withheld=["sts"])
    texts = pd.read_csv(tmp_path / "sts.csv")
    path = study.transformation_file("paraphrasing", 1337)  # of which some outputs are texts, and a server says one
    frame, pairs = pd.read_parquet(path), pd.read_parquet(study.folder / "pairs.parquet")
    unrated = frame.index[frame["text"].isin(texts["sentence2"]) & ~frame["key"].isin(pairs["key"])]
    frame.loc[unrated[0], "output"] = texts["sentence1"][9]
    frame.loc[unrated[1], ["output", "status", "reason"]] = [
        "",
        "failed",
        "the server refused: " + texts["sentence2"][3],
    ]
    note_outputs(study, "paraphrasing", 1337, frame)
    export(study, tmp_path / "a.zip", comments=True)
    bundle = open_checked(tmp_path / "a.zip")
    hidden = {*texts["sentence1"], *texts["sentence2"]}
    for name in bundle.archive.names:
        shown = words_in(name, bundle.archive.read(name))
        assert not [text for text in hidden if text in shown], name
    assert not [name for name in bundle.archive.names if name.startswith(("data/sts/", "tasks/Sts"))]
    copies = [row for row in bundle.outputs("paraphrasing", 1337).to_pylist() if row["copy_of"]]
    assert [(row["output"], row["status"]) for row in copies] == [("", "ok")]
    assert {*bundle.outputs("paraphrasing", 1337)["reason"].to_pylist()} == {"", "the server refused"}
    source = BundleSource(bundle, bundle.study(), {"sts": tmp_path / "sts.csv"})
    assert {*frame["output"]} - {""} == {text for text, _ in source.outputs("paraphrasing", 1337).by_key.values()} - {
        None
    }
    own = pairs.set_index("pair_id")
    assert [pair.original for pair in source.pairs()] == [own["original"][pair.pair_id] for pair in source.pairs()]


@pytest.mark.parametrize(
    ("rights", "said"),
    [({}, "the texts of 'sts' have no licence"), ({"st": "apache-2.0"}, "no data set 'st'; did you mean 'sts'")],
)
def test_a_study_says_whose_its_texts_are(tmp_path: Path, rights: Any, said: str) -> None:
    study = sample_study(tmp_path, licences=rights)
    with pytest.raises(StudyError, match=said):
        export(study, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_a_study_without_verdicts_has_no_bundle(tmp_path: Path) -> None:
    study = sample_study(tmp_path)
    Manifest.of(study).write_models("looks.json", [])
    with pytest.raises(DataError, match=r"there are no verdicts yet; run"):
        export(study, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_an_export_that_is_killed_leaves_no_half_file(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "a.zip"
    child = os.fork()
    if not child:
        export(study, out, step=lambda: os.kill(os.getpid(), 9))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert not out.exists()
    export(study, out)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_the_datasets_library_reads_every_table_that_its_card_describes(bundle: Path, tmp_path: Path) -> None:
    folder = unpacked(bundle, tmp_path / "out")
    found = {
        name: datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))
        for name in datasets.get_dataset_config_names(str(folder))
    }
    assert {name: {split: len(rows) for split, rows in parts.items()} for name, parts in found.items()} == {
        "outputs": {"test": 96},  # 48 texts in two transformations
        "texts": {"test": 48},
        "pairs": {"test": 10},
        "ratings": {"test": 60},
        "pair_means": {"test": 20},
        "scores": {"test": 6},
        "data-requests": {"train": 16, "test": 8},
        "data-sts": {"test": 12},
    }
    words = (folder / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(words.split("---\n")[1])
    assert front["license"] == ["cc-by-4.0", "apache-2.0"]
    assert front["task_categories"] == ["sentence-similarity", "text-classification"]
    assert "simulated-ratings" in front["tags"] and "**Its ratings are SIMULATED" in words
    columns = pq.read_schema(folder / "ratings.parquet").names
    assert not [name for name in columns if f"| {name.replace('_', chr(92) + '_')} |" not in words]


def test_croissant_says_what_its_specification_asks_for(tmp_path: Path) -> None:
    said = {"creator": "A group", "datePublished": "2026-03-01", "url": "https://a.org/set", "citeAs": "@misc{set}"}
    written = export(sample_study(tmp_path, metadata=said), tmp_path / "a.zip")
    assert not written.gaps
    folder = unpacked(tmp_path / "a.zip", tmp_path / "out")
    found = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    asked = {"@context", "@type", "conformsTo", "description", "license", "name", "url", "creator", "datePublished"}
    assert asked | {"distribution", "recordSet"} <= set(found) and "SIMULATED" in found["description"]
    assert (found["version"], found["license"][0]) == ("1.0.0", "https://spdx.org/licenses/CC-BY-4.0")
    for file in found["distribution"]:
        assert file["sha256"] == hashlib.sha256((folder / file["@id"]).read_bytes()).hexdigest()
    for rows in found["recordSet"]:
        sources = [field["source"] for field in rows["field"]]
        (file,) = {source["fileObject"]["@id"] for source in sources}
        assert [source["extract"]["column"] for source in sources] == pq.read_schema(folder / file).names
    ids = [part["@id"] for parts in (found["distribution"], found["recordSet"]) for part in parts]
    assert len(ids) == len(set(ids)) > 10
    if importlib.util.find_spec("mlcroissant"):  # its validator, where somebody has installed it
        read = importlib.import_module("mlcroissant").Dataset(jsonld=str(folder / "croissant.json"))
        assert not read.metadata.ctx.issues.errors and not read.metadata.ctx.issues.warnings


def rejected(verdicts: Any) -> Any:
    return [{**row, "decision": "rejected"} if row["transformation"] == "translation" else row for row in verdicts]


def first_value(value: float) -> Callable[[bytes], bytes]:
    return with_rows(lambda frame: frame.assign(value=frame["value"].mask(frame.index == 0, value)))


def excluded(_: bytes) -> bytes:
    decision = {"rater_id": "simulated-00000000", "exclude": True, "reason": "hasty", "signs": []}
    return json.dumps([decision | {"decided_at": "2026-11-22T12:00:00Z"}]).encode()


def in_part(part: str, **said: Any) -> Callable[[bytes], bytes]:
    return with_json(lambda study: study | {part: study[part] | said})


@pytest.mark.parametrize(
    ("file", "change", "what"),
    [
        ("verdicts.json", with_json(rejected), "translation en decision says rejected, but its ratings give accepted"),
        ("verdicts.json", lambda _: b"[]", "verdicts.json does not follow from the ratings"),
        ("ratings.parquet", first_value(1), "does not follow from the ratings: "),
        ("ratings.parquet", first_value(6), "ratings.parquet has a rating 6 for 'quality', outside its scale"),
        ("pairs.parquet", with_rows(lambda frame: frame[:0]), "which is not among the pairs"),
        ("pair_means.parquet", with_rows(lambda frame: frame[:0]), "pair_means.parquet does not follow"),
        ("decisions.json", excluded, "does not follow from the ratings: "),
        ("study.json", in_part("acceptance", threshold=2.0), "rules.json has other rules than study.json"),
        ("rules.json", lambda _: b"{}", "rules.json does not have the expected content (a list)"),
        ("study.json", with_json(lambda study: study | {"datasets": None}), "study.json: datasets"),
        ("study.json", with_json(lambda study: study | {"engines": {}}), "unexpected setting 'engines' in study"),
        ("study.json", in_part("generator", settings={"trust_remote_code": True}), "unexpected setting 'settings'"),
        ("study.json", in_part("evaluation", models=[{"name": []}]), "study.json is not a study"),
        ("study.json", lambda _: b"[" * 5000 + b"]" * 5000, "study.json is damaged (nested too deep)"),
    ],
)
def test_a_change_is_named_whether_or_not_checksums_fit(edited: Edit, file: str, change: Any, what: str) -> None:
    path = edited({file: change})
    assert f"{file} was changed: its hash differs from that in SHA256SUMS" in said_of(path)
    said = said_of(renewed(path))
    assert what in said and "SHA256SUMS" not in said


def test_files_that_come_and_go_are_named(edited: Edit) -> None:
    assert said_of(edited({"looks.json": None})) == "looks.json is missing"
    assert said_of(edited({}, {"note.json": b"{}"})) == "note.json is not in SHA256SUMS: somebody added it"


def oversized(content: bytes) -> bytes:
    """An archive of a few hundred bytes that says it is 4 GB when unpacked."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SHA256SUMS", b"{}")
    content = sink.getvalue()
    place = content.rindex(b"PK\x01\x02") + 24
    return content[:place] + struct.pack("<L", 4_000_000_000) + content[place + 4 :]


def empty(_: bytes) -> bytes:
    sink = io.BytesIO()
    zipfile.ZipFile(sink, "w").close()
    return sink.getvalue()


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("is cut off, or not a bundle", lambda content: content[:-1000]),
        ("File is not a zip file", lambda _: b"no zip"),
        ("has no SHA256SUMS", empty),
        ("are read from a file of its size", oversized),
        ("format: Input should be 'plumbline bundle 1'", {"manifest.json": with_json(lambda m: m | {"format": "2"})}),
        ("has an unexpected file '../evil.json' in it", "../evil.json"),
        ("has an unexpected file '/etc/evil.json' in it", "/etc/evil.json"),
        ("has an unexpected file 'evil.sh' in it", "evil.sh"),
        (r"has an unexpected file 'a\x1b[2J\nb.json' in it", "a\x1b[2J\nb.json"),
        ("which is not a file (but a link", "link.json"),
    ],
)
def test_archives_that_are_none_or_lead_out_are_one_line(
    bundle: Path, edited: Edit, tmp_path: Path, said: str, change: Any
) -> None:
    path = tmp_path / "hostile.zip"
    if callable(change):
        path.write_bytes(change(bundle.read_bytes()))
    else:
        path = edited(*([change] if isinstance(change, dict) else [{}, {change: b"{}"}]))
    with pytest.raises(DataError) as refused:
        open_checked(path)
    assert said in str(refused.value) and "\n" not in str(refused.value)


PROGRAM = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
from evaluation.bundle.check import open_checked
from plumbline.errors import DataError
try:
    open_checked(pathlib.Path(sys.argv[1]))
    print("read")
except DataError as error:
    print(error)
status = pathlib.Path("/proc/self/status").read_text()  # `getrusage` has the most of the process that started it too
print(status.split("VmHWM:")[1].split()[0])
"""


def bomb(rows: int, word: pa.Array | None = None, column: str = "transformed", **how: Any) -> Callable[[bytes], bytes]:
    """The first row of a table so many times, its words in dictionaries, with another column in its place."""

    def write(content: bytes) -> bytes:
        table = pq.read_table(io.BytesIO(content)).slice(0, 1)
        places = pa.nulls(rows, pa.int32()).fill_null(0)
        columns = {}
        for field in table.schema:
            cells = table[field.name].combine_chunks()
            words = pa.types.is_string(field.type)
            columns[field.name] = pa.DictionaryArray.from_arrays(places, cells) if words else cells.take(places)
        if word is not None:
            columns[column] = word if len(word) == rows else pa.DictionaryArray.from_arrays(places, word)
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False, **how)
        return sink.getvalue()

    return write


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("pairs.parquet", bomb(100_000, pa.array(["x" * 300_000])), "needs more memory for pairs.parquet"),
        ("ratings.parquet", bomb(500_000), "needs more memory for ratings.parquet"),
        (
            "pairs.parquet",
            bomb(10, pa.array(["x" * 12_000_000] * 10), use_dictionary=False),
            "needs more memory for pairs.parquet",
        ),
        (
            "pairs.parquet",
            bomb(10_000, pa.array(["x" * 20_000] * 10_000), use_dictionary=False,
                 column_encoding={"transformed": "DELTA_BYTE_ARRAY"}),
            "pairs.parquet",
        ),
        ("verdicts.json", lambda _: b"[" + b"[]," * 8_000_000 + b"[]]", "at most 16,777,216 are read"),
        ("README.md", lambda _: b"x" * 90_000_000, "are read from a file of its size"),
    ],
)  # fmt: skip
def test_a_bundle_that_would_be_large_in_memory_is_one_line(edited: Edit, file: str, change: Any, says: str) -> None:
    path = renewed(edited({file: change}))
    assert path.stat().st_size < 1_500_000
    done = forks.run([sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    line, used = done.stdout.splitlines()
    assert says in line and int(used) < 1_000_000  # KB


def test_inspect_sets_the_makers_words_apart_and_fails_on_what_is_wrong(bundle: Path, edited: Edit) -> None:
    done = here("bundle", "inspect", str(bundle))
    assert done.returncode == 0 and "SIMULATED" in done.stdout and "apache-2.0" in done.stdout, done.stderr
    assert "match the values computed again from the ratings" in done.stdout
    done = here("bundle", "inspect", str(edited({"verdicts.json": with_json(rejected)})))
    assert done.returncode == 2 and "verdicts.json was changed" in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("error: ")
    lie = "fine\n\nChecked by this program:\nok     all \x1b[2J\u2028ok     all\u202e" + "\u2800" * 300 + "ok"
    path = renewed(edited({"manifest.json": with_json(lambda m: m | {"metadata": {"version": lie}, "licence": lie})}))
    done = here("bundle", "inspect", str(path))
    assert done.returncode == 0 and not set(done.stdout) & set("\x1b\u2028\u202e")
    lines = done.stdout.splitlines()
    claimed = [line for line in lines if "fine" in line or "\u2800" in line]
    assert len(claimed) > 2 and all(line.startswith("  | ") and len(line) < 120 for line in claimed)
    assert lines.count("Checked by this program:") == 1
