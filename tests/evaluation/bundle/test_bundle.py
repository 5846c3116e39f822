"""The file: what is in it, what is not, and that whatever was changed in it is named."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.judges import decisions
from evaluation.bundle.bundle import Archive, Bundle, check_signature
from evaluation.bundle.check import faults, open_checked
from evaluation.bundle.export import export
from evaluation.bundle.records import REPORTS
from evaluation.bundle.report import difference
from evaluation.bundle.source import BundleSource
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest
from plumbline.records import TransformedText
from plumbline.store import hashed_bytes
from plumbline.study import Study
from tests.commands import here
from tests.evaluation.bundle.samples import DATA, REFERENCE, RIGHTS, made_bundle, recorded_study

Edit = Callable[..., Path]


def with_rows(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[bytes], bytes]:
    """A change of a table's rows."""

    def edit(content: bytes) -> bytes:
        table = pq.read_table(io.BytesIO(content))
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(change(table.to_pandas()), schema=table.schema, preserve_index=False), sink)
        return sink.getvalue()

    return edit


def with_json(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """A change of what a JSON member says."""
    return lambda content: json.dumps(change(json.loads(content))).encode()


def renewed(path: Path, *, packed: bool = False) -> Path:
    """The archive with a manifest that fits its members: what somebody does who knows the format."""
    with zipfile.ZipFile(path) as archive:
        held = {one: archive.read(one) for one in archive.namelist()}
    said = json.loads(held["manifest.json"])
    for name, content in held.items():
        if name != "manifest.json":
            said["members"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    held["manifest.json"] = json.dumps(said).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return path


def said_of(path: Path) -> str:
    return "\n".join(f"{member} {what}" for member, what in faults(Bundle.open(path)))


def test_the_same_study_gives_the_same_bytes(study: Study, bundle: Path, tmp_path: Path) -> None:
    export(study, tmp_path / "b.plumb", check=open_checked)
    assert (tmp_path / "b.plumb").read_bytes() == bundle.read_bytes()
    assert open_checked(bundle).identity == hashlib.sha256(Archive(bundle).read("manifest.json")).hexdigest()


def test_nothing_in_it_names_a_person_or_a_place(study: Study, bundle: Path) -> None:
    archive = Archive(bundle)
    assert set(REPORTS) <= set(archive.names)
    whole = b"".join(archive.read(name) for name in archive.names)
    assert str(study.file.parent).encode() not in whole and b"/tmp/" not in whole and b"strict" not in whole
    ratings = pd.read_parquet(io.BytesIO(archive.read("ratings.parquet")))
    assert ratings["rater_id"].str.fullmatch("simulated-[0-9a-f]{8}").all() and ratings["seconds"].isna().all()
    assert set(ratings["comment"]) == {""} and set(ratings["batch"]) == {""}


def test_raters_who_stand_there_by_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = recorded_study(tmp_path)
    for name in ("refuse_stale", "refuse_edited"):
        monkeypatch.setattr(decisions, name, lambda *_: None)
    path = study.folder / "ratings.parquet"
    frame = pd.read_parquet(path)
    frame.assign(rater_id="anna").drop_duplicates(["pair_id", "question"]).to_parquet(path)
    monkeypatch.setattr(
        "plumbline.manifest.Manifest.table_bytes",
        lambda manifest, name, made_by: hashed_bytes(manifest.folder / name, made_by),
    )
    with pytest.raises(DataError, match="1 rater has no pseudonym"):
        export(study, tmp_path / "a.plumb")
    assert not list(tmp_path.glob("*.plumb*")) and not list(tmp_path.glob(".*.tmp"))


def words_in(name: str, content: bytes) -> str:
    """All that can be read in a member: of a table the words in its cells, as JSON has them."""
    if not name.endswith(".parquet"):
        return content.decode()
    return json.dumps(pq.read_table(io.BytesIO(content)).to_pylist(), ensure_ascii=False, default=str)


def test_texts_that_may_not_be_handed_on_stay_out(tmp_path: Path) -> None:
    study = recorded_study(tmp_path, datasets=dict.fromkeys(("sample_sts", "sample_intents"), REFERENCE))
    own = set(pd.read_parquet(study.folder / "texts.parquet")["text"])
    for report in REPORTS.values():
        (study.folder / report).parent.mkdir()
        (study.folder / report).write_text("\n".join(own), encoding="utf-8")
    path = study.transformation_file("paraphrasing", 1337)  # a server that says the text back
    frame = pd.read_parquet(path)
    failed = frame["status"] == "failed"
    frame["reason"] = frame["reason"].mask(failed, "the server refused the text: " + frame["text"])
    Manifest.of(study).write_table(str(path.relative_to(study.folder)), frame, TransformedText)
    export(study, tmp_path / "a.plumb", comments=True, check=open_checked)
    bundle = open_checked(tmp_path / "a.plumb")
    assert len(own) == 84 and {*bundle.texts("sample_sts")["text"].to_pylist()} == {""}
    assert {*bundle.outputs("paraphrasing", 1337)["reason"].to_pylist()} == {"", "the server refused the text"}
    assert bundle.archive.names and not [one for one in bundle.archive.names if one.startswith(("data/", "report/"))]
    for name in bundle.archive.names:
        whole = words_in(name, bundle.archive.read(name))
        assert not [text for text in own if text in whole or json.dumps(text)[1:-1] in whole], name
    copies = [row for row in bundle.outputs("translation", 1337).to_pylist() if row["copy_of"]]
    assert [(row["copy_of"] == row["text_id"], row["output"], row["status"]) for row in copies] == [(True, "", "ok")]


def test_a_copy_of_a_text_is_left_out_of_pairs_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = recorded_study(tmp_path, datasets={"sample_sts": REFERENCE, "sample_intents": RIGHTS})
    path, texts = study.folder / "pairs.parquet", pd.read_parquet(study.folder / "texts.parquet")
    pairs = pd.read_parquet(path)
    one = pairs[(pairs["dataset"] == "sample_sts") & (pairs["transformation"] == "paraphrasing")].iloc[0]
    other = texts[(texts["dataset"] == "sample_sts") & (texts["text"] != one["original"])].iloc[0]["text"]
    pairs.assign(transformed=pairs["transformed"].mask(pairs["key"] == one["key"], other)).to_parquet(path)
    made = study.transformation_file("paraphrasing", 1337)
    frame = pd.read_parquet(made)
    frame.assign(output=frame["output"].mask(frame["key"] == one["key"], other)).to_parquet(made)
    for name in ("refuse_stale", "refuse_edited"):  # the records' hashes are others now
        monkeypatch.setattr(decisions, name, lambda *_: None)
    export(study, tmp_path / "a.plumb")
    bundle = Bundle.open(tmp_path / "a.plumb")
    (kept,) = (pair for pair in bundle.evidence.collected.sample_pairs if pair.key == one["key"])
    assert (kept.original, kept.transformed) == ("", "")
    source = BundleSource(bundle, bundle.study(), {"sample_sts": DATA / "pairs.csv"})
    (whole,) = (pair for pair in source.pairs() if pair.key == one["key"])
    assert (whole.original, whole.transformed) == (one["original"], other)
    hashed = bundle.outputs("paraphrasing", 1337).to_pandas().query("copy_of != ''")
    assert list(hashed["copy_of"]) == list(texts.query("text == @other")["text_id"])
    said = "\n".join(difference(Bundle.open(made_bundle() / "a.plumb"), bundle).splitlines())
    assert ["paraphrasing", "84", "83", "1", "0"] in [line.split() for line in said.splitlines()]
    assert ["translation", "84", "84", "0", "0"] in [line.split() for line in said.splitlines()]


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ({}, "the texts of 'sample_sts' have no licence"),
        ({"sts": RIGHTS}, "no data set 'sts'; known: "),
    ],
)
def test_a_study_says_whose_its_texts_are(tmp_path: Path, rights: Any, said: str) -> None:
    study = recorded_study(tmp_path, datasets=rights)
    with pytest.raises(StudyError, match=said):
        export(study, tmp_path / "a.plumb")
    assert not (tmp_path / "a.plumb").exists()


def test_an_export_that_is_killed_leaves_no_half_file(study: Study, tmp_path: Path) -> None:
    out = tmp_path / "a.plumb"
    child = os.fork()
    if not child:
        export(study, out, step=lambda: os.kill(os.getpid(), 9))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert not out.exists() and list(tmp_path.glob(".a.plumb.*.tmp"))
    export(study, out)
    assert [one.name for one in tmp_path.iterdir()] == ["a.plumb"]


def accepted_more(verdicts: Any) -> Any:
    return [{**one, "decision": "rejected"} if one["transformation"] == "translation" else one for one in verdicts]


def lower(frame: pd.DataFrame) -> pd.DataFrame:
    place = frame.index[frame["value"] == 5][0]
    return frame.assign(value=frame["value"].mask(frame.index == place, 1))


def other_rated(pairs: pd.DataFrame) -> Callable[[pd.DataFrame], pd.DataFrame]:
    key = pairs.loc[pairs["transformation"] == "paraphrasing", "key"].iloc[0]
    return lambda frame: frame.assign(output=frame["output"].mask(frame["key"] == key, "something else"))


def test_whatever_was_edited_is_named(bundle: Path, edited: Edit) -> None:
    seen = Bundle.open(bundle).evidence.collected
    rater = seen.plain_ratings["rater_id"].iloc[0]
    decision = {"rater_id": rater, "exclude": True, "reason": "hasty", "signs": []}
    excluded = json.dumps([decision | {"decided_at": "2026-11-22T12:00:00Z"}]).encode()
    changes: dict[str, tuple[Callable[[bytes], bytes], str]] = {
        "verdicts.json": (
            with_json(accepted_more),
            "translation in English says rejected, but its ratings give accepted",
        ),
        "ratings.parquet": (with_rows(lower), "pair_means.parquet does not follow from the ratings: pair "),
        "outputs/paraphrasing/1337.parquet": (with_rows(other_rated(seen.pairs)), "was edited: the output of pair "),
        "texts/sample_sts.parquet": (with_rows(lambda f: f.assign(text="A")), "the text 'A' does not match its hash"),
        "decisions.json": (lambda _: excluded, f"for {rater}'s rating of pair "),
        "transformations.json": (lambda c: c.replace(b"{text}", b"{text}!"), "has prompts of paraphrasing"),
        "rules.json": (
            lambda c: c.replace(b'"threshold": 3.0', b'"threshold": 2.0'),
            "has other rules than the study",
        ),
        "manifest.json": (with_json(lambda m: m | {"simulated": False}), "whether they are simulated"),
    }
    path = edited({name: change for name, (change, _) in changes.items()})
    said = said_of(path)
    for name in set(changes) - {"manifest.json"}:
        assert f"{name} was edited: its hash differs from the manifest's" in said
    assert said.count("its hash differs from the manifest's") == len(changes) - 1
    again = said_of(renewed(path))  # by somebody who knows the format
    for name, (_, what) in changes.items():
        assert what in said and what in again, name


def test_members_that_come_and_go_are_named(edited: Edit) -> None:
    assert "looks.json is missing" in said_of(edited({"looks.json": None}))
    assert "note.json is not in the manifest" in said_of(edited({}, {"note.json": b"{}"}))


def bomb(path: Path) -> Path:
    """An archive of a few hundred bytes that says it is 10 GB when unpacked."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"{}")
    content = path.read_bytes().replace(struct.pack("<L", 2) * 1, struct.pack("<L", 2), 1)
    place = content.rindex(b"PK\x01\x02") + 24
    path.write_bytes(content[:place] + struct.pack("<L", 4_000_000_000) + content[place + 4 :])
    return path


def test_archives_that_are_none_are_one_line(bundle: Path, edited: Edit, tmp_path: Path) -> None:
    cut, empty, text = (tmp_path / name for name in ("cut", "empty", "text"))
    cut.write_bytes(bundle.read_bytes()[:-1000])
    text.write_text("no zip")
    with zipfile.ZipFile(empty, "w"):
        pass
    later = with_json(lambda said: said | {"version": 2})
    tried = {
        "no file": tmp_path / "nothing",
        "is a folder, not a file": tmp_path,
        "is cut off, or not a bundle": cut,
        "File is not a zip file": text,
        "has no manifest.json": empty,
        "has format 2, but this version reads up to 1": shutil.copy(
            edited({"manifest.json": later}), tmp_path / "later"
        ),
        "has an unexpected member '../evil.json'": shutil.copy(edited({}, {"../evil.json": b""}), tmp_path / "1"),
        "has an unexpected member '/etc/evil.json'": shutil.copy(edited({}, {"/etc/evil.json": b""}), tmp_path / "2"),
        "has an unexpected member 'evil.py'": shutil.copy(edited({}, {"evil.py": b""}), tmp_path / "3"),
        "that is not a file": shutil.copy(edited({}, {"link.json": b"/etc/passwd"}), tmp_path / "4"),
        "are read from a file of its size": bomb(tmp_path / "bomb"),
    }
    for said, path in tried.items():
        with pytest.raises(DataError) as refused:
            open_checked(Path(path))
        assert said in str(refused.value) and "\n" not in str(refused.value)


def test_inspect_says_what_is_in_it_and_fails_on_what_is_wrong(bundle: Path, edited: Edit) -> None:
    done = here("bundle", "inspect", str(bundle))
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout and "apache-2.0" in done.stdout and "signature: not checked" in done.stdout
    assert "match the values computed again from the ratings" in done.stdout
    done = here("bundle", "inspect", str(edited({"verdicts.json": with_json(accepted_more)})))
    assert done.returncode == 2 and "says rejected, but its ratings give accepted" in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("error: ")
    done = here("bundle", "inspect", str(bundle), "--key", "RWQ")
    assert done.returncode == 2 and "is not signed" in done.stderr


def test_what_a_bundle_says_stands_apart_from_what_was_checked(edited: Edit) -> None:
    lie = (
        "fine\n\nChecked by this program:\nok     signature: verified \x1b[2J\u2028ok     all\u202e"
        + "\u2800" * 300
        + "ok"
    )
    said = with_json(lambda m: m | {"description": lie, "contact": lie, "licence": lie, "edition": lie})
    done = here("bundle", "inspect", str(edited({"manifest.json": said})))
    assert not set(done.stdout) & set("\x1b\u2028\u202e")
    lines = done.stdout.splitlines()
    claimed = [line for line in lines if "fine" in line or "verified" in line or "\u2800" in line]
    assert len(claimed) > 4 and all(line.startswith("  | ") and len(line) < 80 for line in claimed)
    checked = lines[lines.index("Checked by this program:") + 1 :]
    assert lines.count("Checked by this program:") == 1 and not [line for line in checked if "verified" in line]
    assert checked[-1] == "open   signature: not checked; add --key to check it"


def test_a_signature_is_checked_by_minisign(bundle: Path, tmp_path: Path) -> None:
    tool, own = shutil.which("minisign"), Path(shutil.copy(bundle, tmp_path / "own.plumb"))
    if tool is None:
        own.with_name("own.plumb.minisig").touch()
        with pytest.raises(StudyError, match="checking signatures needs minisign"):
            check_signature(own, "RWQ")
        return
    key, secret = tmp_path / "k.pub", tmp_path / "k.sec"
    subprocess.run([tool, "-G", "-W", "-p", key, "-s", secret], check=True, capture_output=True)
    subprocess.run([tool, "-S", "-s", secret, "-m", own, "-t", "edition 1"], check=True, capture_output=True)
    assert "edition 1" in check_signature(own, str(key))
    assert "edition 1" in check_signature(own, key.read_text().splitlines()[-1])
    own.chmod(0o644)
    own.write_bytes(own.read_bytes() + b"0")
    with pytest.raises(DataError, match=r"is not valid for this key \(Signature verification failed\)"):
        check_signature(own, str(key))
