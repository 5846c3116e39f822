"""Wordings from the generator and from people: what is asked, kept, refused, taken out, and resumed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from generation.instructions.run import Replies, word_instructions
from generation.instructions.wordings import (
    REMOVED,
    REPLIES,
    Call,
    Instruction,
    InvalidReplyError,
    Reply,
    asked_of,
    calls_of,
    distances,
    maker_hash,
    read_reply,
    read_wordings,
    schema,
    tasks_of,
    wording,
)
from plumbline.errors import DataError, ServiceError
from plumbline.journal import Journal
from plumbline.models import openai, servers
from plumbline.store import read_records, write_table
from plumbline.study import Study
from plumbline.study.subject import INSTRUCTIONS
from tests.instructions import made
from tests.stubs import Asked, ChatStub, refuses, says
from tests.stubs import Reply as Answer


def calls_wanted(study: Study) -> list[Call]:
    subject = asked_of(study)
    return calls_of(subject, tasks_of(subject, study.datasets, study.file), maker_hash(study.generator, study.resolve))


def test_the_sample_study_has_fifteen_wordings_a_task_but_one_that_is_nearly_another(tmp_path: Path) -> None:
    study = made(tmp_path)
    assert word_instructions(study).counts == {"ok": 6, "reused": 0}
    wordings = read_wordings(study)
    by_machine = [one for one in wordings if one.source == "machine"]
    assert Counter(one.group for one in wordings) == {
        "from_task_type": 10, "from_description": 10, "from_language": 9, "from_people": 10,
    }  # fmt: skip
    tasks = {"sample_retrieval": "retrieval", "sample_intents": "classification"}
    served = {name: sum(one.serves(name, kind) for one in by_machine) for name, kind in tasks.items()}
    assert served == {"sample_retrieval": 14, "sample_intents": 15}
    (removed,) = json.loads((study.folder / REMOVED).read_text())
    assert removed["text"] == "Find the encyclopaedia's paragraph that answers that reader:"
    kept = {one.prompt_id: one for one in wordings}[removed["kept"]]
    apart = distances([removed["text"], kept.text])[0, 1]
    assert apart == pytest.approx(2 / 60)  # "this" and "that" differ in two of sixty characters
    assert kept.context == "description"
    assert "Search {collection} for:" in {one.text for one in wordings}  # braces stand as they are
    assert word_instructions(study).counts == {"reused": 6}


def test_a_server_is_held_to_the_exact_number_and_asked_again_for_what_is_not(tmp_path: Path) -> None:
    def script(asked: Asked) -> Answer:
        wordings = [f"{n} of {len(last(asked))}" for n in range(5)]
        return says(json.dumps({"prompts": wordings if asked.times > 1 else [*wordings[:4], wordings[0]]}))

    with ChatStub(script) as stub:
        server = {"kind": "openai", "model": "m", "base_url": stub.url, "settings": {"concurrency": 1}}
        found = word_instructions(made(tmp_path, generator=server, subject={"contexts": ["task_type"], "prompts": ""}))
    assert found.counts == {"ok": 2, "reused": 0} and len(found.wordings) == 10
    held = [asked.body["response_format"]["json_schema"] for asked in stub.asked]
    assert [one["schema"] for one in held] == [schema(5)] * 4 and held[0]["strict"] is True
    assert schema(5)["properties"]["prompts"]["minItems"] == schema(5)["properties"]["prompts"]["maxItems"] == 5
    assert len({asked.body["seed"] for asked in stub.asked}) == 2  # both calls begin with the study's, then draw anew


def wordings(asked: Asked) -> Answer:
    """Five lines that no other message gets."""
    return says(json.dumps({"prompts": [f"{asked.message[:n]} {len(asked.message)} {n}" for n in range(1, 6)]}))


GOOD = says(json.dumps({"prompts": ["one", "two", "three", "four", "five"]}))
SOON = {"retry_after": "0.01"}
#: What six calls get before a good answer, and what becomes of each where `retry` and the client ask three times.
FAULTS: tuple[tuple[list[Answer], str, str], ...] = (
    ([refuses(429, "slow down", **SOON), Answer(b"", cut=True)], "ok", ""),
    ([replace(GOOD, half=True), refuses(500, "oops", **SOON)], "ok", ""),
    ([says('{"prompts": ["one"', finish_reason="length"), says("Certainly! Here they are")], "ok", ""),
    ([says(None), says("\ud83d")], "failed", "the answer contains half a character (a lone surrogate)"),
    ([refuses(503, "loading", retry_after_ms="10")] * 3, "unanswered", "status 503, asked 3 times: loading"),
    ([says('{"prompts": [' + '"x", ' * 999 + '"x"]}')] * 3, "failed", "1000 wordings instead of 5"),
)


def test_bad_answers_cost_their_own_calls_alone_and_a_later_run_asks_for_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(openai, "RETRIES", 2)
    seen = list[str]()

    def script(asked: Asked) -> Answer:
        if asked.message not in seen:
            seen.append(asked.message)
        ahead = FAULTS[seen.index(asked.message)][0]
        return ahead[asked.times - 1] if asked.times <= len(ahead) else wordings(asked)

    with ChatStub(script) as stub:
        server = {"kind": "openai", "model": "m", "base_url": stub.url, "settings": {"concurrency": 1}}
        study = made(tmp_path, generator=server, subject={"prompts": ""})
        found = word_instructions(study)
        replies = {row.key: row for row in read_records(study.folder / REPLIES, Reply, "")}
        told = [replies[call.key] for call in calls_wanted(study)]
        assert [(one.status, one.reason) for one in told] == [(status, reason) for _, status, reason in FAULTS]
        assert found.counts == {"ok": 3, "failed": 2, "unanswered": 1, "reused": 0} and len(found.wordings) == 15
        before = len(stub.asked)
        assert word_instructions(study).counts == {"ok": 1, "reused": 5}  # what got no answer
        again = word_instructions(study, again=True)
        assert again.counts == {"ok": 2, "reused": 4} and len(again.wordings) == 30 and not again.trouble
        assert len(stub.asked) == before + 1 + 2 and all("response_format" in one.body for one in stub.asked)


def test_a_key_that_is_refused_ends_the_run_and_what_came_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    with ChatStub(lambda asked: wordings(asked) if len(stub.asked) < 3 else refuses(401, "bad key s3cret")) as stub:
        server = {"kind": "openai", "model": "m", "base_url": stub.url, "settings": {"concurrency": 1}}
        study = made(tmp_path, generator=server, subject={"prompts": ""})
        with pytest.raises(ServiceError, match="the key is not accepted; set OPENAI_API_KEY") as error:
            word_instructions(study)
        assert "s3cret" not in str(error.value)
        stub.script = wordings
        assert word_instructions(study).counts == {"reused": 2, "ok": 4}


def last(asked: Asked) -> str:
    return str(asked.body["messages"][-1]["content"])


def test_a_server_that_takes_no_schema_is_asked_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def script(asked: Asked) -> Answer:
        if "response_format" in asked.body:
            return refuses(400, "response_format is not known")
        return says(json.dumps({"prompts": [f"{n} of {len(last(asked))}" for n in range(5)]}))

    with ChatStub(script) as stub:
        server = {"kind": "openai", "model": "m", "base_url": stub.url, "settings": {"concurrency": 1}}
        found = word_instructions(made(tmp_path, generator=server, subject={"contexts": ["task_type"], "prompts": ""}))
    assert len(found.wordings) == 10 and len(stub.asked) == 3  # once with the schema, then without
    assert capsys.readouterr().out.count("m accepts no JSON schema") == 1


def test_replies_in_the_journal_of_a_killed_run_are_not_asked_for_again(tmp_path: Path) -> None:
    study = made(tmp_path)
    word_instructions(study)
    rows = read_records(study.folder / REPLIES, Reply, "")
    (study.folder / REPLIES).unlink()
    journal = Journal((study.scratch / REPLIES).with_suffix(".journal"))
    for row in rows[:4]:
        journal.append(row)
    journal.close()
    with journal.path.open("ab") as file:  # what a kill cut off
        file.write(b'{"key": "half')
    study = made(tmp_path, name="instructions")
    assert [call.context for call in Replies(study, calls_wanted(study)).jobs()] == ["language", "language"]
    (study.folder / "manifest.json").unlink()
    assert word_instructions(study).counts == {"reused": 4, "ok": 2}


def test_people_and_machine_may_word_alike_and_then_it_is_the_persons(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("task,prompt\nretrieval,Query\nsample_intents,Library request\nsample_intents,Library request\n")
    found = word_instructions(made(tmp_path, subject={"prompts": str(file)}))
    alike = {one.text: (one.source, one.task) for one in found.wordings if one.text in ("Query", "Library request")}
    assert alike == {"Query": ("human", ""), "Library request": ("human", "sample_intents")}
    assert sorted(one.group for one in found.removed) == [
        "from_description", "from_language", "from_people", "from_task_type",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["Trouvez\u00a0:", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"])
def test_blanks_and_joiners_of_other_languages_stay(text: str) -> None:
    assert wording(text) == text  # French has a fixed blank before a colon, Persian joins letters without one


def test_wordings_that_were_edited_by_hand_are_refused(tmp_path: Path) -> None:
    study = made(tmp_path)
    word_instructions(study)
    rows = read_wordings(study)
    edited = [rows[0].model_copy(update={"task_type": "classification"}), *rows[1:]]
    write_table(study.folder / INSTRUCTIONS, edited, Instruction)
    with pytest.raises(DataError, match="differs from what was written"):
        read_wordings(study)
    word_instructions(study)
    assert read_wordings(study) == rows


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("sample_sts,Compare", "row 2, field 'task': the study has no data set or task type 'sample_sts'; "),
        ("retrieval,", "row 2, field 'prompt': the wording is empty; models are evaluated without"),
        (
            "\n".join(f"retrieval,Find number {n}" for n in range(1001)),
            "1,001 wordings for 'retrieval'; give at most 1,000",
        ),
    ],
)
def test_a_row_of_people_that_cannot_be_used_is_one_line(tmp_path: Path, row: str, says: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(f"task,prompt\n{row}\n")
    with pytest.raises(DataError) as error:
        word_instructions(made(tmp_path, subject={"prompts": str(file)}))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"prompts": ["a", "b"]}', "2 wordings instead of 3"),
        ('{"prompts": ["a", "b", " a "]}', "the wording 'a' appears twice"),
        ('{"prompts": ["a", "b", ""]}', "the wording is empty"),
        ('{"prompts": ["a", "b", 3]}', "no list of texts under 'prompts'"),
        ('["a", "b", "c"]', "no list of texts under 'prompts'"),
        ('Here they are: {"prompts"', "not JSON"),
        ('{"prompts": ["a", "b", "' + "x" * 501 + '"]}', "a wording of 501 characters"),
    ],
)
def test_what_is_no_reply_is_told_from_one(answer: str, why: str) -> None:
    with pytest.raises(InvalidReplyError, match=why.replace("(", r"\(")):
        read_reply(answer, 3)
    assert read_reply('```json\n{"prompts": ["a{b}", "b", " c"]}\n```', 3) == ("a{b}", "b", "c")
