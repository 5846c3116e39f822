"""Who gets a letter, and what is said where somebody gets none."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import pytest

from annotation import server
from annotation.annotators import (
    AnnotatorProgress,
    idle_lines,
    invite_users,
    remind,
    target_lines,
    unread_lines,
    unwritten,
)
from annotation.sampling.queues import Queue
from plumbline.study import Study
from tests.annotation.campaigns import Make


def standing(name: str, left: int | None, *, excluded: bool = False, **remarks: str) -> AnnotatorProgress:
    return AnnotatorProgress(name, f"rater-{name}", 3, left, None, excluded, False, remarks)


def test_who_is_behind_is_reminded_who_is_done_thanked_and_who_gets_no_letter_is_said() -> None:
    found = [
        standing("ada", 5, behind="few answers"),
        standing("bob", 4),
        standing("cyd", 0, fast="4 s a pair", done="all items are answered"),
        standing("dan", 6, excluded=True),
        standing("eve", None),
    ]
    letters = {one.name: one.text for one in remind("demo", found, {"cyd": ["de"]}, "")}
    assert list(letters) == ["ada", "cyd"]
    assert letters["ada"].startswith("A reminder: demo\n") and letters["cyd"].startswith("Vielen Dank: demo\n")
    said = unwritten(found)
    assert (
        said.startswith("No letter to bob: they have open items but are not behind (raters are behind if they have ")
        and "0.5 times" in said
        and "7 days" in said
    )
    assert unwritten(found[2:]) == ""


QUEUES = {
    Queue("paraphrasing", "en", "en"): 4,
    Queue("translation", "en", "de"): 2,
    Queue("translation", "en", "ko"): 1,
}


def of(study: Study, *people: str) -> Study:
    return study.model_copy(update={"raters": study.raters.model_copy(update={"people": people})})


def test_a_queue_that_nobody_reads_is_said() -> None:
    reads = {"ada": ("en", "de"), "kim": ("ko",)}  # each knows one of Korean and English, and nobody both
    (line,) = unread_lines("read", None, QUEUES, reads)
    assert line.startswith("no rater reads English and Korean (1 pair of read-translation-EN-KO); add one")
    assert len(unread_lines("read", ("kim",), QUEUES, reads)) == 3
    assert not unread_lines("read", None, QUEUES, {})  # nothing is known
    assert not unread_lines("read", ("kim", "somebody"), QUEUES, reads)  # who may read anything


def test_who_reads_none_of_the_queues_is_said(variant: Make) -> None:
    reads = {"ada": ("en",), "hans": ("de",)}
    (line,) = idle_lines("read", QUEUES, reads, ["ada", "hans", "somebody"])
    assert line.startswith(
        "hans reads German, which is not enough for any queue of read; the queues need English; English and Kor"
    )


def test_languages_that_nobody_reads_are_said_before_a_sample_is_drawn(variant: Make) -> None:
    study = variant(name="read", transformations=["paraphrasing", "translation"])
    (line,) = target_lines(study.transforming, None, {"ada": ("en", "de")})
    assert line.startswith(
        "translation translates texts into 4 languages that no annotator reads; to leave them out, set"
        " `languages: [de]`"
    )
    fewer = variant(name="read", transformations=["translation"], languages=["de"])
    assert not target_lines(fewer.transforming, None, {"ada": ("de",)})
    assert not target_lines(study.transforming, None, {})


def test_an_invitation_to_a_server_that_ends_with_the_command_says_so(
    tmp_path: Path, variant: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, study = server.Home(tmp_path), variant(name="ended")
    connection = server.Connection("http://127.0.0.1:40813", "key", home)
    monkeypatch.setattr("annotation.annotators.reach", lambda home: contextlib.nullcontext(connection))
    monkeypatch.setattr("annotation.annotators.invite", lambda *_: [])
    monkeypatch.setattr("annotation.annotators._say_idle", lambda *_: None)
    monkeypatch.setattr("annotation.annotators.accounts.languages", lambda *_: {})
    options = argparse.Namespace(
        study=str(study.file), exports=None, data=str(tmp_path), names=["ada"], address=None, to=None
    )
    assert invite_users(options) == 0
    assert "40813 stopped with this command; start one that keeps running" in capsys.readouterr().err
    options.address = "https://rate.example.org"
    assert invite_users(options) == 0 and not capsys.readouterr().err
