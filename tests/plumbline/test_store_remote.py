"""Records at an address: in memory, and on a real S3 server on this machine (moto's)."""

from __future__ import annotations

import logging
import shutil
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import requests
from moto.server import ThreadedMotoServer

from annotation.campaign.records import CampaignRecords
from annotation.sampling.sample import draw_sample
from generation.datasets.tables import read_frame
from generation.production import generate
from plumbline import cli
from plumbline.__main__ import run
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.manifest import Manifest, stage
from plumbline.records import Text, TransformedText
from plumbline.store import only_one, read_json, read_records, write_json, write_table
from plumbline.study import ROOT, Study, file_hash, load_study
from tests.generation.helpers import complaint, generate_at, server, start, write_study
from tests.generation.test_run import finish, wait_until
from tests.shared import generate_once
from tests.stubs import Asked, ChatStub, Reply, last_line, says

DEMO = ROOT / "studies" / "demo.yaml"
TEXTS = tuple(f"text number {number}" for number in range(60))
CONCURRENCY = 4
TEXT = Text.model_construct(**dict.fromkeys(Text.model_fields, "x"))


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for each request
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket, which this process and those that it starts have the rights to."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "hidden-from-everybody",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class(
        "s3"
    ).clear_instance_cache()  # they keep the keys and addresses that they were made with
    address = f"s3://{uuid.uuid4()}"
    fsspec.filesystem("s3").mkdir(address)
    yield address
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture
def memory() -> Iterator[str]:
    """An empty address in this process's memory."""
    address = f"memory://{uuid.uuid4()}"
    yield address
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(params=["memory", "bucket"])
def address(request: pytest.FixtureRequest) -> str:
    """Where records go, once in memory and once on S3."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What this process must have on this machine goes to the test's folder."""
    monkeypatch.setattr("plumbline.study.working", lambda name: tmp_path / "local")


def content(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Everything in the study's tables but when it was received."""
    units = [(name, seed) for name in study.transformations for seed in study.seeds]
    read = {
        f"{name}/{seed}": read_records(study.transformation_file(name, seed), TransformedText, "")
        for name, seed in units
    }
    read["texts"] = read_records(study.folder / "texts.parquet", Text, "")
    return {name: [row.model_dump(exclude={"finished_at"}) for row in rows] for name, rows in read.items()}


def test_generation_leaves_there_what_it_leaves_here(memory: str, tmp_path: Path) -> None:
    some = {"transformations": ("paraphrasing", "translation")}
    places = (tmp_path / "exports", f"{memory}/studies")
    here, there = (load_study(DEMO, exports).model_copy(update=some) for exports in places)
    assert str(there.folder) == f"{memory}/studies/demo"
    counts = generate(here)
    with stage(there, "generation", there.data_files(), [there.folder / "texts.parquet", there.outputs]):
        assert generate(there) == counts
    assert content(there) == content(here)
    assert generate(there) == {"reused": counts.total()}
    assert not [p for p in (tmp_path / "local").rglob("*") if p.suffix in (".journal", ".tmp")]

    entry = Manifest.of(there).read()["stages"]["generation"]
    assert entry["outputs"] == {
        "texts.parquet": file_hash(here.folder / "texts.parquet"),
        "transformations": file_hash(there.outputs),
    }
    assert set(entry["inputs"]) == {str(path.relative_to(DEMO.parent)) for path in there.data_files()}


def test_what_comes_next_reads_it_there_as_here(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, printed = [], []
    for exports in (str(tmp_path / "exports"), f"{bucket}/studies"):
        study = load_study(DEMO, exports)
        if drawn:
            fsspec.filesystem("s3").put(f"{tmp_path}/outputs/", f"{study.folder}/", recursive=True)
        else:
            generate_once(study)
            shutil.copytree(study.folder, tmp_path / "outputs")
        drawn += [draw_sample(study), CampaignRecords(study).pairs]
        capsys.readouterr()
        assert run(["errors", "--study", str(DEMO), "--exports", exports]) == 0
        printed.append(capsys.readouterr().out)
    assert len(drawn[0]) > 50 and drawn.count(drawn[0]) == 4
    assert study.generator.model in printed[0] and printed[0] == printed[1]


def test_a_file_is_replaced_whole_and_folders_hash_as_here(address: str, tmp_path: Path) -> None:
    here, there = tmp_path / "records", load_study(DEMO, address).folder
    for folder in (here, there):
        for name in ("a.json", "a-b/1.json", "a/1.json", "a/2.json"):
            write_json(folder / name, {"long": "x" * 100})
            write_json(folder / name, [name])
    assert read_json(there / "a" / "1.json", "") == ["a/1.json"]
    assert file_hash(there) == file_hash(here)
    assert file_hash(there / "a.json") == file_hash(here / "a.json")
    with pytest.raises(DataError, match="appears twice"):  # as any error while it is written
        write_table(there / "a.json", [TEXT, TEXT], Text)
    assert read_json(there / "a.json", "") == ["a.json"]


def slow(asked: Asked) -> Reply:
    return says(last_line(asked)[::-1], seconds=0.05)


def test_a_killed_run_goes_on_from_the_journal_on_this_machine(bucket: str, tmp_path: Path) -> None:
    with ChatStub(slow) as stub:
        generator = server(stub.url, concurrency=CONCURRENCY)
        path = write_study(tmp_path, TEXTS, transformations=["paraphrasing", "cross_translation"], generator=generator)
        process = start(path, f"{bucket}/studies")
        wait_until(lambda: stub.answered >= 70)  # of 120: within the second of two units
        process.kill()
        assert finish(process)[0] == -signal.SIGKILL
        status, _, err = finish(start(path, f"{bucket}/studies"))
        assert status == 0, err
        assert 120 <= len(stub.asked) <= 120 + CONCURRENCY  # what was in flight at the kill is asked for again
        generate_at(path)
    study = load_study(path, f"{bucket}/studies")
    assert content(study) == content(load_study(path, tmp_path / "exports"))
    shutil.rmtree(own_scratch(study))


def own_scratch(study: Study) -> Path:
    """The folder that commands use, which know nothing of this test's folder."""
    return ROOT / "exports" / ".remote" / study.scratch.name


def test_a_bucket_that_is_not_there_is_one_line_and_is_not_made(bucket: str, tmp_path: Path) -> None:
    address = f"{bucket}-other"
    status, _, err = finish(start(write_study(tmp_path), f"{address}/studies"))
    assert status == 2
    line = complaint(err)
    assert line.startswith(f"error: {address}/studies/small/texts.parquet cannot be written (")
    assert "bucket does not exist" in line and line.endswith("correct the address or your rights there, then run again")
    assert not fsspec.filesystem("s3").exists(address)
    shutil.rmtree(own_scratch(load_study(tmp_path / "study.yaml", f"{address}/studies")))


def test_without_rights_it_is_one_line(bucket: str, s3: str) -> None:
    study = load_study(DEMO, bucket)
    write_json(study.folder / "a.json", 1)
    requests.post(f"{s3}/moto-api/reset-auth", data=b"0", timeout=10).raise_for_status()  # from now on nobody has any
    try:
        with pytest.raises(
            ServiceError, match=r"a.json cannot be written \(.*; correct the address or your rights there"
        ):
            write_json(study.folder / "a.json", 2)
        with pytest.raises(ServiceError, match=r"a.json cannot be read \("):
            read_json(study.folder / "a.json", "")
        with pytest.raises(StudyError, match=f"^--exports {bucket}/x: ") as raised:
            load_study(DEMO, f"{bucket}/x")
        assert "hidden-from-everybody" not in str(raised.value)
    finally:
        requests.post(f"{s3}/moto-api/reset-auth", data=b"inf", timeout=10).raise_for_status()


@pytest.mark.parametrize(
    "place",
    [
        "s3://AKIA:hidden@bucket/x",
        "s3://AKIA:hid/den@bucket/x",
        "s3://AKIA:123/hidden@bucket/x",
        "ftp://me:hidden@127.0.0.1/x",
        "abfs://container/x?sig=hidden",
        "simplecache::s3://AKIA:hidden@bucket/x",
    ],
)
def test_keys_in_an_address_are_refused_and_not_shown(place: str) -> None:
    with pytest.raises(StudyError, match="environment") as raised:
        load_study(DEMO, place)
    assert "hid" not in str(raised.value).replace(str(DEMO), "")


def test_a_file_address_is_a_folder(tmp_path: Path) -> None:
    study = load_study(DEMO, f"file://{tmp_path}")
    assert study.folder == tmp_path / "demo"
    assert study.scratch == study.folder


def test_two_addresses_share_nothing_on_this_machine() -> None:
    places = [load_study(DEMO, place).scratch for place in ("memory://a", "memory://b", "memory://a/b")]
    assert len(set(places)) == 3
    for place in places:
        with only_one(place / ".lock", "held"):
            assert not list(place.glob("*.journal"))
            (place / "x.journal").touch()


def test_a_subject_that_an_earlier_command_left_there_is_read_there(address: str) -> None:
    place = load_study(DEMO, address).folder / "prompts.parquet"
    write_table(place, [TEXT], Text)
    assert read_frame(place)["text"].tolist() == ["x"]


def test_an_address_where_a_file_of_this_machine_is_needed_is_one_line() -> None:
    far = "s3://b/x.csv"
    for words in (["bundle", "inspect", far], ["board", "--from", far], ["board", "--from", "x", "--tasks", far]):
        with pytest.raises(StudyError, match=f"'{far}' is an address; name a file or folder of this machine"):
            run(words)
    assert (cli.local("x.csv"), cli.no_address("MTEB(eng, v2)")) == (Path("x.csv"), "MTEB(eng, v2)")
