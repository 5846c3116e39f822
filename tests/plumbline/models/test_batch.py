"""The generator `openai` asked through files for a batch API; a function stands for the provider."""

from __future__ import annotations

import functools
import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generation.production import generate, generate_shard, read_batch, read_transformed
from generation.unit import Shard
from plumbline.errors import DataError, StudyError
from plumbline.models import batch
from plumbline.models.batch import IN_BATCH, batch_path
from plumbline.models.openai import REFUSALS
from plumbline.study import Study, load_study
from tests.commands import here
from tests.generation.helpers import LETTERS, server, small_study, start, write_study
from tests.generation.test_run import wait_until
from tests.stubs import Asked, ChatStub, Reply

NOWHERE = "http://127.0.0.1:9/v1"  # a run that asks this server ends with an error
TEXTS = (*LETTERS, "again and again", "refuse this", "cut this off", "filter this")


def completion(content: str | None, finish_reason: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    """A page as OpenAI writes it, with keys that nobody reads."""
    message = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}]
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage}


def reply(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and page of the answer to a request, the same whoever asks."""
    text = body["messages"][0]["content"].split("\n")[-1]
    if text.startswith("again") and not body["temperature"]:
        return 200, completion("")
    if text.startswith("refuse"):
        return 200, completion(None, refusal="I cannot help with that.")
    if text.startswith("cut"):
        return 200, completion(text[:3], "length")
    if text.startswith("filter"):
        return 400, {"error": {"message": "flagged by the content policy", "code": "content_filter"}}
    return 200, completion(text[::-1])


def lines_of(requests: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in requests.read_text("utf-8").splitlines()]


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """The line of an output file that answers a request."""
    status, page = reply(request["body"])
    response = {"status_code": status, "request_id": "r", "body": page}
    return {"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": None}


def provide(requests: Path, output: Path, answer: Callable[[dict[str, Any]], Any] = answered) -> Path:
    """Write a provider's output file: lines in another order, text as it is, a mark at the beginning."""
    lines = [json.dumps(answer(request), ensure_ascii=False) for request in reversed(lines_of(requests))]
    output.write_text("\ufeff" + "\n".join(lines) + "\n", "utf-8")
    return output


def study_of(folder: Path, texts: tuple[str, ...] = TEXTS, url: str = NOWHERE, **changes: Any) -> Study:
    changes.setdefault("transformations", ["paraphrasing", "backtranslation", "summarised_expansion"])
    return small_study(folder, texts, **{"generator": server(url), **changes})


def rows(study: Study) -> list[dict[str, Any]]:
    """All outputs, without the time at which they were read."""
    return [
        row.model_dump(exclude={"finished_at"})
        for name in study.transformations
        for seed in study.seeds
        for row in read_transformed(study, name, seed)
    ]


def rounds(study: Study, folder: Path) -> list[Path]:
    """Write requests and read their answers until nothing is left to ask; return the files of requests."""
    files = list[Path]()
    while True:
        file = folder / f"{len(files) + 1}.jsonl"
        counts = generate(study, batch_file=file)
        if not counts["unanswered"]:
            assert not file.exists() and not batch_path(study).exists()
            return files
        files.append(file)
        read_batch(study, [provide(file, folder / f"{len(files)}.output.jsonl")])


def test_answers_from_files_become_the_outputs_of_live_answers(tmp_path: Path) -> None:
    """Retries, second calls, refusals and cut answers among them, round by round."""

    def script(asked: Asked) -> Reply:
        status, page = reply(asked.body)
        return Reply(json.dumps(page).encode(), status)

    with ChatStub(script) as stub:
        live = study_of(tmp_path / "live", url=stub.url)
        generate(live)
    study = study_of(tmp_path / "batch")
    files = rounds(study, tmp_path)
    assert rows(study) == rows(live) and {row["status"] for row in rows(live)} == {"ok", "failed"}
    requests = [request for file in files for request in lines_of(file)]
    assert len(files) == 3
    assert sorted(json.dumps(request["body"]) for request in requests) == sorted(
        {json.dumps(asked.body) for asked in stub.asked}
    )
    ids = [request["custom_id"] for request in requests]
    assert len(set(ids)) == len(ids) and all(
        len(custom_id) <= 64 and custom_id.replace("-", "").isalnum() for custom_id in ids
    )
    assert {(request["method"], request["url"]) for request in requests} == {("POST", "/v1/chat/completions")}
    assert "\n\n" not in files[0].read_text("utf-8") and files[0].stat().st_mode & 0o077 == 0


def test_every_line_of_a_providers_files_is_accounted_for(tmp_path: Path) -> None:
    """Errors as OpenAI, Azure, Groq, Together, Fireworks and vLLM write them."""
    study = study_of(tmp_path, LETTERS, transformations=["paraphrasing"])
    generate(study, batch_file=tmp_path / "requests.jsonl")
    asked = lines_of(tmp_path / "requests.jsonl")
    by_text = {request["body"]["messages"][0]["content"].split("\n")[-1]: request for request in asked}
    answers = {text: answered(request) for text, request in by_text.items()}
    answers["cloud"] |= {"response": completion("clouds")}  # the answer itself
    answers["dream"]["response"]["body"] = json.dumps(completion("dreams"))  # as a text
    answers["earth"] |= {
        "response": {"status_code": 400, "request_id": "r", "body": None},
        "error": {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}},
    }
    answers["flame"] |= {"response": None, "error": {"code": "batch_expired", "message": "This request expired."}}
    answers["grape"]["response"] |= {"status_code": 429, "body": {"error": {"message": "slow down"}}}
    answers["house"] = {"custom_id": by_text["house"]["custom_id"], "error": {"message": "invalid", "code": "x"}}
    answers["apple"] |= {"further": {"nested": [1]}}
    foreign = {**answers["bread"], "custom_id": "another-study-\ud800"}
    files = [[*(answers[text] for text in ("bread", "apple", "cloud", "dream", "apple")), foreign]]
    files.append([answers[text] for text in ("earth", "flame", "grape", "house")])
    whole = "\n".join(map(json.dumps, files[0])) + "\n" + json.dumps(answers["ivory"])[:90]
    (tmp_path / "output.jsonl").write_bytes(b"\xef\xbb\xbf" + whole.replace("\n", "\r\n").encode())
    (tmp_path / "errors.jsonl").write_text("\n".join(map(json.dumps, files[1])), "utf-8")
    (tmp_path / "empty.jsonl").write_text("")
    lines = read_batch(study, [tmp_path / name for name in ("output.jsonl", "errors.jsonl", "empty.jsonl")])
    bread = foreign["response"]["body"]["choices"][0]["message"]["content"]
    assert lines == [
        f"{tmp_path}/output.jsonl: 4 answers, 1 read before or doubled, 1 of another study or batch (line 6),"
        " 1 cut off or without an answer (line 7)",
        f"{tmp_path}/errors.jsonl: 1 of status 400 (too long), 2 not done, to be asked again (This request expired.),"
        " 1 of status 429 (slow down)",
        f"{tmp_path}/empty.jsonl: no line",
    ]
    generate(study, batch_file=tmp_path / "requests.2.jsonl")
    outputs = {row["text"]: (row["status"], row["output"] or row["reason"]) for row in rows(study)}
    assert outputs == {
        "apple": ("ok", "elppa"),
        "bread": ("ok", bread),
        "cloud": ("ok", "clouds"),
        "dream": ("ok", "dreams"),
        "earth": ("failed", "the server refused the text: too long"),
        **dict.fromkeys(("flame", "grape", "house", "ivory", "joker"), ("unanswered", IN_BATCH)),
    }
    again = {request["custom_id"].rpartition("-")[0] for request in lines_of(tmp_path / "requests.2.jsonl")}
    assert again == {by_text[text]["custom_id"].rpartition("-")[0] for text in ("flame", "grape", "house")}
    # what is out again is not asked a third time for a file that tells of the first
    assert "3 read before or doubled" in read_batch(study, [tmp_path / "errors.jsonl"])[0]
    generate(study, batch_file=tmp_path / "requests.3.jsonl")
    assert not (tmp_path / "requests.3.jsonl").exists()


def test_an_answer_of_no_use_is_paid_twice_at_most_and_its_reason_is_told(tmp_path: Path) -> None:
    """The third answer is an error of a server behind a gateway, which is free and asked for each time."""
    study = study_of(tmp_path, LETTERS[:4], transformations=["paraphrasing"])
    useless = {"bread": {"data": []}, "cloud": completion("clo", "ran_dry"), "dream": {"error": {"code": 503}}}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        body = useless.get(request["body"]["messages"][0]["content"].split("\n")[-1])
        return answered(request) | ({"response": {"status_code": 200, "body": body}} if body else {})

    asked, reasons = list[int](), list[dict[str, tuple[str, str]]]()
    for number in range(1, 5):
        file = tmp_path / f"{number}.jsonl"
        generate(study, batch_file=file)
        reasons.append({row["text"]: (row["status"], row["reason"]) for row in rows(study)})
        asked.append(len(lines_of(file)))
        read_batch(study, [provide(file, tmp_path / f"{number}.output.jsonl", answer)])
    assert asked == [4, 3, 1, 1]
    assert [reasons[1][text][0] for text in ("apple", "bread", "cloud")] == ["ok", "unanswered", "unanswered"]
    assert [reasons[2][text][0] for text in ("bread", "cloud", "dream")] == ["failed", "failed", "unanswered"]
    for told in reasons[1:3]:
        assert "is not a chat response" in told["bread"][1] and "'ran_dry'" in told["cloud"][1]


def test_files_without_an_answer_are_refused_together_and_nothing_is_kept(tmp_path: Path) -> None:
    study, other = (study_of(tmp_path / name, LETTERS) for name in ("one", "other"))
    with pytest.raises(StudyError, match=r"no request of 'small' is in a batch; `plumbline generate --study"):
        read_batch(study, [tmp_path / "output.jsonl"])
    for of, name in ((study, "mine.jsonl"), (other, "others.jsonl")):
        generate(of, batch_file=tmp_path / name)
    good = provide(tmp_path / "mine.jsonl", tmp_path / "good.jsonl")
    foreign = provide(tmp_path / "others.jsonl", tmp_path / "foreign.jsonl")
    with pytest.raises(DataError) as error:
        read_batch(study, [good, foreign, tmp_path / "mine.jsonl", tmp_path / "nothing.jsonl", tmp_path])
    faults = str(error.value).splitlines()
    assert [fault.partition(";")[0] for fault in faults] == [
        f"{foreign}: none of its 30 lines is an answer to a request of this study's batch",
        f"{tmp_path}/mine.jsonl: none of its 30 lines is an answer to a request of this study's batch",
        f"no file {tmp_path}/nothing.jsonl",
        f"{tmp_path} is a folder, not a file",
    ]
    assert read_batch(study, [good]) == [f"{good}: 30 answers"]


def test_no_other_run_pays_for_what_is_in_a_batch(tmp_path: Path) -> None:
    study = study_of(tmp_path, LETTERS, transformations=["paraphrasing"])
    file = tmp_path / "requests.jsonl"
    generate(study, batch_file=file)
    out = r"a batch has 10 requests of 'small' without an answer \(.*requests.jsonl\): read its .* add --batch-lost"
    with pytest.raises(StudyError, match=out):
        generate(study)
    for run in (
        lambda: generate_shard(study, Shard(1, 2)),
        lambda: generate(study, cluster="auto"),
        lambda: generate(study, again=True, batch_file=tmp_path / "2.jsonl"),
    ):
        with pytest.raises(StudyError, match="has a batch that has not ended; run without --again, --ray and --shard"):
            run()
    (tmp_path / "other.jsonl").write_text("answers, perhaps")
    with pytest.raises(StudyError, match="exists already; name a new file"):
        generate(study, batch_file=tmp_path / "other.jsonl")
    requests = file.read_bytes()
    assert generate(study, batch_file=file)["unanswered"] == 10  # the command of a killed run
    assert file.read_bytes() == requests
    assert generate(study, batch_file=tmp_path / "2.jsonl")["unanswered"] == 10  # all are out
    assert not (tmp_path / "2.jsonl").exists()
    assert read_batch(study, [], lost=True) == []
    generate(study, batch_file=tmp_path / "2.jsonl")
    assert [request["body"] for request in lines_of(tmp_path / "2.jsonl")] == [r["body"] for r in lines_of(file)]
    read_batch(study, [provide(tmp_path / "2.jsonl", tmp_path / "output.jsonl")])
    assert generate(study)["ok"] == 10  # at once, and nothing is asked
    with pytest.raises(StudyError, match="generator.kind is 'vllm'; batch files are for one of kind openai"):
        generate(study_of(tmp_path / "b", generator={"kind": "vllm", "model": "m"}), batch_file=tmp_path / "3.jsonl")


def test_what_follows_from_a_batch_can_be_asked_at_once(tmp_path: Path) -> None:
    """A run without a file takes the answers that are there, and asks the server for the rest."""
    with ChatStub(lambda asked: Reply(json.dumps(reply(asked.body)[1]).encode())) as stub:
        study = study_of(tmp_path, url=stub.url, transformations=["backtranslation"])
        generate(study, batch_file=tmp_path / "requests.jsonl")
        assert not stub.asked
        read_batch(study, [provide(tmp_path / "requests.jsonl", tmp_path / "output.jsonl")])
        generate(study)
    first = {request["body"]["messages"][0]["content"] for request in lines_of(tmp_path / "requests.jsonl")}
    assert not [asked for asked in stub.asked if asked.message in first and not asked.body["temperature"]]
    assert {row["status"] for row in rows(study)} == {"ok", "failed"} and not batch_path(study).exists()


def test_requests_without_a_seed_are_as_many_as_live_ones(tmp_path: Path) -> None:
    request = {"seed": None, "temperature": None}
    study = study_of(
        tmp_path, ("apple",), seeds=[1, 2], transformations=["paraphrasing"], generator=server(NOWHERE, request=request)
    )
    generate(study, batch_file=tmp_path / "1.jsonl")
    first, second = lines_of(tmp_path / "1.jsonl")
    assert first["body"] == second["body"] and first["custom_id"] != second["custom_id"]
    bad = {"response": {"status_code": 200, "body": completion("")}}
    read_batch(study, [provide(tmp_path / "1.jsonl", tmp_path / "1.output", lambda r: {**answered(r), **bad})])
    generate(study, batch_file=tmp_path / "2.jsonl")
    assert [request["body"] for request in lines_of(tmp_path / "2.jsonl")] == [first["body"]] * 2


def test_a_large_batch_is_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, transformations=["paraphrasing"])
    monkeypatch.setattr(batch, "MOST", 4)
    (tmp_path / "r-2.jsonl").write_text("answers, perhaps")
    with pytest.raises(StudyError, match=r"r-2.jsonl: exists already"):
        generate(study, batch_file=tmp_path / "r.jsonl")
    (tmp_path / "r-2.jsonl").unlink()
    generate(study, batch_file=tmp_path / "r.jsonl")
    files = sorted(tmp_path.glob("r*.jsonl"))
    assert [(file.name, len(lines_of(file))) for file in files] == [
        ("r-1.jsonl", 4),
        ("r-2.jsonl", 4),
        ("r-3.jsonl", 4),
        ("r-4.jsonl", 2),
    ]
    read_batch(study, [provide(file, file.with_suffix(".output")) for file in files])
    monkeypatch.setattr(batch, "LARGEST", 10)  # less than a request: each has a file
    generate(study, batch_file=tmp_path / "s.jsonl")
    assert {len(lines_of(file)) for file in tmp_path.glob("s*.jsonl")} == {1}
    assert sum(len(lines_of(file)) for file in tmp_path.glob("s*.jsonl")) == 2  # the empty answer, the cut one


def test_the_next_command_is_a_line_to_paste(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    path = write_study(tmp_path / "a study", TEXTS, generator=server(NOWHERE), transformations=["backtranslation"])
    where = ("--study", str(path), "--exports", str(tmp_path / "exports"))
    done = here("generate", *where, "--batch-file", str(tmp_path / "my requests.jsonl"))
    assert done.returncode == 0 and "0 texts transformed, 0 failed, 14 unanswered" in done.stdout
    assert "14 requests in" in done.stdout and IN_BATCH not in done.stdout
    number = 0
    while " --batch-file " in (last := next(line for line in done.stdout.splitlines() if line.startswith("Next: "))):
        number += 1
        assert done.stdout.endswith(f"{last}\n")
        words = shlex.split(last.removeprefix("Next: plumbline "))
        missing = here(*words)
        assert missing.returncode == 2 and missing.stderr.count("\n") == 1 and "error: no file" in missing.stderr
        requests, output = (
            tmp_path / f"my requests{f'.{number}' if number > 1 else ''}{end}" for end in (".jsonl", ".output.jsonl")
        )
        provide(requests, output)
        errors = tmp_path / f"errors{number}.jsonl"
        echo = {"error": {"message": "wrong key sk-secret-0123456789"}}
        line = {"custom_id": lines_of(requests)[0]["custom_id"], "response": {"status_code": 401, "body": echo}}
        errors.write_text(json.dumps(line))
        done = here(
            *words[: words.index("--batch-output") + 1], str(errors), *words[words.index("--batch-output") + 1 :]
        )
        assert done.returncode == 0 and "1 of status 401 (wrong key (the key))" in done.stdout
        assert "sk-secret" not in done.stdout + done.stderr
        kept = [file for file in (tmp_path / "exports").rglob(".batch-*") if b"sk-secret" in file.read_bytes()]
        assert not kept
    assert number > 2 and "11 texts" not in done.stdout
    assert not [
        file
        for file in tmp_path.rglob("*")
        if file.is_file() and not file.name.startswith("errors") and b"sk-secret" in file.read_bytes()
    ]
    files = (file for file in tmp_path.glob("my requests*.jsonl") if "output" not in file.name)
    bodies = [json.dumps(request["body"]) for file in files for request in lines_of(file)]
    assert len(set(bodies)) == len(bodies)


def has_grown(journal: Path, least: int, ended: Callable[[], int | None]) -> bool:
    """Whether a journal has that many bytes, or its process has ended."""
    return ended() is not None or (journal.exists() and journal.stat().st_size >= least)


def test_a_killed_run_loses_nothing_and_asks_for_nothing_twice(tmp_path: Path) -> None:
    texts = tuple(f"text number {number}" for number in range(600))
    path = write_study(tmp_path, texts, generator=server(NOWHERE), transformations=["backtranslation"])
    study = load_study(path, tmp_path / "exports")
    generate(study, batch_file=tmp_path / "1.jsonl")
    output = provide(tmp_path / "1.jsonl", tmp_path / "1.output.jsonl")
    read_batch(study, [output])
    generate(study, batch_file=tmp_path / "2.jsonl")
    second = provide(tmp_path / "2.jsonl", tmp_path / "2.output.jsonl")
    journal = study.journal_file("backtranslation", 1)
    options = ("--batch-file", str(tmp_path / "3.jsonl"), "--batch-output", str(second))
    for least in (1, 18_000, 36_000):  # bytes
        with start(path, options=options) as process:
            ended = process.poll
            wait_until(functools.partial(has_grown, journal, least, ended))
            process.send_signal(signal.SIGKILL)
    assert generate(study)["unanswered"] == 0
    assert {row["status"] for row in rows(study)} == {"ok"} and len(rows(study)) == 600
    assert not (tmp_path / "3.jsonl").exists() and not batch_path(study).exists()


def test_a_run_that_ends_before_its_file_is_written_writes_it_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, LETTERS)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batch.BatchRequests, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(study, batch_file=tmp_path / "requests.jsonl")
    assert not (tmp_path / "requests.jsonl").exists()
    generate(study, batch_file=tmp_path / "requests.jsonl")
    assert len(lines_of(tmp_path / "requests.jsonl")) == 30


def test_again_asks_anew_takes_no_old_answer_and_drops_none_that_is_no_output_yet(tmp_path: Path) -> None:
    study = study_of(tmp_path, ("refuse this", "apple"), transformations=["paraphrasing"])
    generate(study, batch_file=tmp_path / "1.jsonl")
    output = provide(tmp_path / "1.jsonl", tmp_path / "1.output.jsonl")
    read_batch(study, [output])
    with pytest.raises(StudyError, match="has a batch that has not ended; run without --again"):
        generate(study, again=True, batch_file=tmp_path / "2.jsonl")
    assert generate(study) == {"ok": 1, "failed": 1}
    generate(study, again=True, batch_file=tmp_path / "2.jsonl")
    assert len(lines_of(tmp_path / "2.jsonl")) == 1
    with pytest.raises(DataError, match="none of its 2 lines"):
        read_batch(study, [output])


def test_requests_that_the_study_no_longer_wants_stay_known_while_they_are_out(tmp_path: Path) -> None:
    generate(study_of(tmp_path, LETTERS, transformations=["paraphrasing"]), batch_file=tmp_path / "1.jsonl")
    output = provide(tmp_path / "1.jsonl", tmp_path / "1.output.jsonl")
    late = tmp_path / "late.jsonl"
    lines = output.read_text("utf-8").splitlines(keepends=True)  # those of the first texts come last
    late.write_text("".join(lines[:5]), "utf-8")
    output.write_text("".join(lines[5:]), "utf-8")
    narrow = study_of(tmp_path, LETTERS[:5], transformations=["paraphrasing"])
    read_batch(narrow, [output])
    assert generate(narrow, batch_file=tmp_path / "2.jsonl")["ok"] == 5
    wide = study_of(tmp_path, LETTERS, transformations=["paraphrasing"])
    read_batch(wide, [late])
    assert generate(wide, batch_file=tmp_path / "2.jsonl")["ok"] == 5
    assert not (tmp_path / "2.jsonl").exists() and not batch_path(wide).exists()


def test_refusals_in_files_say_nothing_about_the_server(tmp_path: Path) -> None:
    """As many as end a live run; the run that reads them asks nothing again."""
    study = study_of(
        tmp_path, (*(f"filter {number}" for number in range(REFUSALS + 1)), "apple"), transformations=["paraphrasing"]
    )
    generate(study, batch_file=tmp_path / "1.jsonl")
    read_batch(study, [provide(tmp_path / "1.jsonl", tmp_path / "1.output.jsonl")])
    assert generate(study) == {"failed": REFUSALS + 1, "ok": 1}


def test_no_run_killed_while_it_writes_leaves_requests_that_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file gets its name when its requests are known to be out, not before."""
    study = study_of(tmp_path, LETTERS, transformations=["paraphrasing"])

    rename = Path.replace

    def killed(source: Path, target: Path) -> Path:
        if target.suffix == ".jsonl":
            raise KeyboardInterrupt
        return rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            generate(study, batch_file=tmp_path / "1.jsonl")
    assert not (tmp_path / "1.jsonl").exists()
    with pytest.raises(StudyError, match="a batch has 10 requests of 'small' without an answer .* was never sent"):
        generate(study)
    read_batch(study, [], lost=True)
    generate(study, batch_file=tmp_path / "1.jsonl")
    assert {request["custom_id"].rpartition("-")[2] for request in lines_of(tmp_path / "1.jsonl")} == {"2"}


def test_a_damaged_database_is_one_line(tmp_path: Path) -> None:
    study = study_of(tmp_path, LETTERS)
    generate(study, batch_file=tmp_path / "1.jsonl")
    assert batch_path(study).stat().st_mode & 0o077 == 0
    batch_path(study).write_bytes(os.urandom(5000))
    with pytest.raises(DataError, match="is damaged"):
        generate(study)
