"""Judges at work: what they are asked and about which pairs, what stays of their answers, and that nothing is lost."""

from __future__ import annotations

import json
import math
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.campaign.rubric import load_rubric
from annotation.judges.gold import gold_pairs
from annotation.judges.pool import _drawn, draw_judged, read_judged
from annotation.judges.prompts import JudgePrompt
from annotation.judges.run import judge, questionnaires, read_judgements
from annotation.records import Supply
from annotation.sampling.candidates import Candidate
from annotation.sampling.sample import PoolDrawing, draw_sample
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.prompts import PROMPTS, read_prompt
from plumbline.records import Pair
from plumbline.study import ROOT, Study
from tests import forks
from tests.annotation.judgements import pair
from tests.annotation.judges import demo_rule
from tests.shared import generate_once
from tests.stubs import Asked, ChatStub, Reply, answers, refuses, says

PAIRS, JUDGED = 3, 6  # of the sample; by default twice as many are judged
PTEBS = ("pteb_sts", "pteb_paraphrase")
RUBRIC = "You rate texts as the people of a study do."
OWN = {"name": "own", "source": "mine", "language": "en"}  # a prompt beside the study


def chat(url: str, concurrency: int = 32, **changes: Any) -> dict[str, Any]:
    engine = {"kind": "openai", "model": "m", "base_url": url, "settings": {"concurrency": concurrency}}
    return {"name": "one", "engine": engine, **changes}


def shares(asked: Asked, **points: float) -> Reply:
    """An answer with probabilities of first tokens, as a server tells them."""
    top = [{"token": token, "logprob": math.log(share)} for token, share in points.items()]
    logprobs = {"content": [{"token": "4", "logprob": -0.1, "top_logprobs": top}]} if "logprobs" in asked.body else None
    choice = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "length"}
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 75}}
    return answers({"choices": [{**choice, "logprobs": logprobs}], "usage": usage})


@pytest.fixture
def judged_by(variant: Callable[..., Study]) -> Callable[..., Study]:
    """A generated study of three paraphrases, of which judges rate three more; its sample is drawn."""

    def make(*judges: dict[str, Any], **changes: Any) -> Study:
        parts = {"transformations": ["paraphrasing"], "sample": {"pairs": PAIRS}}
        study = variant(**{**parts, "judges": list(judges), **changes})
        if not (study.folder / "pairs.parquet").exists():
            generate_once(study)
            draw_sample(study)
        return study

    return make


def test_scores_are_expected_from_a_servers_probabilities(judged_by: Callable[..., Study]) -> None:
    # "4" with and without a blank is one label; what is no label is no part of the score.
    script = lambda asked: shares(asked, **{"3": 0.2, "4": 0.5, " 4": 0.1, "The": 0.2})  # noqa: E731
    with ChatStub(script) as stub:
        study = judged_by(chat(stub.url))
        (done,) = judge(study)
    assert done.counts == {"ok": 12, "reused": 0}  # 6 pairs, 2 questions
    assert done.cached == 0.75
    frame = read_judgements(study)
    assert set(frame["mode"]) == {"expected"} and set(frame["status"]) == {"ok"}
    assert frame["score"].to_numpy() == pytest.approx((3 * 0.2 + 4 * 0.6) / 0.8)
    assert frame["label_mass"].to_numpy() == pytest.approx(0.8)
    assert len(frame.drop_duplicates(["pair_id", "question"])) == 12
    _, *asked = stub.asked
    assert {one.body["max_tokens"] for one in asked} == {1}
    assert {one.body["chat_template_kwargs"]["enable_thinking"] for one in asked} == {False}


def test_a_judge_reads_the_raters_words_first_and_the_texts_last(judged_by: Callable[..., Study]) -> None:
    study = judged_by(chat("http://127.0.0.1:9/v1"))
    rubric, (asked,) = load_rubric(study), questionnaires(study)
    texts = {"original": "a {points} b", "transformed": "{original}"}
    pair = draw_judged(study, keep=False)[0].model_copy(update=texts)
    asking, *_ = asked.askings(pair)
    assert asking.message.startswith(RUBRIC)
    assert " ".join(rubric.guidelines["en"].split()) in " ".join(asking.message.split())
    assert rubric.pool("paraphrasing").asked["en"] in asking.message
    points = rubric.meaning("paraphrasing", rubric.questions[0], "en")[1]
    lines = [f"{point} = {words}" for point, words in points.items()]
    assert "\n".join(lines) in asking.message
    # Texts are data: braces in them stay.
    assert asking.message.endswith("Original:\na {points} b\n\nNew text:\n{original}\n\nYour rating:")


def test_the_pairs_of_the_sample_are_among_the_judged_and_no_control_is(judged_by: Callable[..., Study]) -> None:
    study = judged_by(chat("http://127.0.0.1:9/v1"))
    sample, pairs = draw_sample(study), draw_judged(study)
    assert [pair.pair_id for pair in pairs[:PAIRS]] == [pair.pair_id for pair in sample]
    assert [pair.place for pair in pairs] == list(range(1, JUDGED + 1))
    assert not any(pair.control for pair in pairs) and all(pair.stratum.startswith("en/") for pair in pairs)
    assert read_judged(study) == pairs
    # Drawn before the sample they are the same ones: a smaller sample is the beginning of a larger one.
    for name in ("pairs", "controls"):
        (study.folder / f"{name}.parquet").unlink()
    assert [pair.pair_id for pair in draw_judged(study, keep=False)[:PAIRS]] == [pair.pair_id for pair in sample]


def test_a_server_without_probabilities_is_read_as_text_and_says_so(
    judged_by: Callable[..., Study], capsys: pytest.CaptureFixture[str]
) -> None:
    def script(asked: Asked) -> Reply:
        if "chat_template_kwargs" in asked.body:
            return refuses(400, "unknown field chat_template_kwargs")
        return says("<think>hm</think>3")

    with ChatStub(script) as stub:
        study = judged_by(chat(stub.url, questions=["quality"]))
        judge(study)
    assert set(read_judgements(study)["mode"]) == {"text"} and set(read_judgements(study)["score"]) == {3.0}
    said = capsys.readouterr().out
    assert "one: the server returns no probabilities, so scores are the numbers in its answers (mode text)" in said
    assert "one: the server cannot turn thinking off, so thoughts are cut off from its answers" in said


def test_a_point_that_a_server_may_begin_with_another_is_read_as_text(
    judged_by: Callable[..., Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tokenizer with a token a digit gives the first token of 10 as 1."""
    own = {**OWN, "text": "{original} {transformed}", "question": "near", "lowest": 0, "highest": 10}
    (tmp_path / "own.yaml").write_text(json.dumps({**own, "variables": ["original", "transformed"]}))
    with ChatStub(lambda asked: shares(asked, **{"1": 0.99}) if "logprobs" in asked.body else says("10")) as stub:
        study = judged_by(chat(stub.url, prompt="own.yaml"))
        judge(study)
    judged = read_judgements(study)
    assert set(judged["score"]) == {10.0} and set(judged["mode"]) == {"text"}
    assert "a server may write the point '10' in several tokens, so scores are the" in capsys.readouterr().out


NO_CHAT_ANSWERS = [
    Reply(b"<html>one moment</html>", content_type="text/html"),
    Reply(b"plain words"),
    Reply(b"[]"),
    answers({"error": {"message": "busy"}}),
    answers({"choices": []}),
    answers({"choices": [None]}),
]


@pytest.mark.parametrize("reply", NO_CHAT_ANSWERS)
def test_a_reply_that_is_no_chat_answer_ends_no_run(judged_by: Callable[..., Study], reply: Reply) -> None:
    """Neither the very first one nor one among others; probabilities and silence are still asked for."""
    asked: list[Asked] = []

    def script(one: Asked) -> Reply:
        asked.append(one)
        return reply if len(asked) in (1, 4) else shares(one, **{"5": 1.0})

    with ChatStub(script) as stub:
        study = judged_by(chat(stub.url, questions=["quality"], concurrency=1))
        (done,) = judge(study)
        lost = done.counts["unanswered"] + done.counts["failed"]
        assert (done.counts["ok"], lost, len(stub.asked)) == (JUDGED - 1, 1, 2 + JUDGED)
        assert set(read_judgements(study).query("status == 'ok'")["mode"]) == {"expected"}
        if done.counts["unanswered"]:
            assert "1 unanswered" in done.line("judgements")
            assert judge(study)[0].counts == {"reused": JUDGED - 1, "ok": 1}


def test_a_server_that_gives_no_chat_answer_ever_is_one_line(judged_by: Callable[..., Study]) -> None:
    with ChatStub(lambda _: NO_CHAT_ANSWERS[0]) as stub, pytest.raises(ServiceError, match="answer"):
        judge(judged_by(chat(stub.url)))
    assert len(stub.asked) == 10


def test_a_field_that_every_question_is_refused_for_is_named_and_can_be_left_out(
    judged_by: Callable[..., Study],
) -> None:
    """As a reasoning model answers: no temperature, no probabilities, and another name for the length."""

    def script(asked: Asked) -> Reply:
        refused = [name for name in ("logprobs", "max_tokens", "temperature") if name in asked.body]
        return refuses(400, f"Unsupported parameter: '{refused[0]}'") if refused else says("Score: **4**")

    request = {"max_tokens": None, "max_completion_tokens": 500}
    with ChatStub(script) as stub:
        spec = chat(stub.url)
        for more, field in (({}, "max_tokens"), (request, "temperature")):
            spec["engine"]["settings"] = {"request": more}
            with pytest.raises(ServiceError, match=rf"for {field}: .* in the settings of judges \(one\)"):
                judge(judged_by(spec))
        spec["engine"]["settings"] = {"request": {**request, "temperature": None}}
        (done,) = judge(judged_by(spec))
    assert done.counts["ok"] == JUDGED * 2
    assert {asked.body["max_completion_tokens"] for asked in stub.asked[-JUDGED:]} == {500}


def test_what_cannot_be_read_is_asked_again_and_then_failed_with_its_reason(judged_by: Callable[..., Study]) -> None:
    with ChatStub(lambda asked: says("4/7" if asked.times < 4 else "2")) as stub:
        study = judged_by(chat(stub.url, score="text", questions=["quality"]))
        (first,) = judge(study)
        (second,) = judge(study)
        assert (first.counts["failed"], second.counts["reused"], len(stub.asked)) == (JUDGED, JUDGED, 1 + 3 * JUDGED)
        rows = read_judgements(study)
        assert set(rows["reason"]) == {"not just a number: '4/7'"} and set(rows["attempts"]) == {3}
        assert rows["score"].isna().all()
        temperatures = [one.body["temperature"] for one in stub.asked[1:]]
        assert sorted(set(temperatures)) == [0.0, 0.7]
        (third,) = judge(study, again=True)
    assert third.counts["ok"] == JUDGED
    assert set(read_judgements(study)["score"]) == {2.0}


def test_a_server_that_ends_in_the_middle_loses_nothing(judged_by: Callable[..., Study]) -> None:
    gone: list[int] = []

    def script(asked: Asked) -> Reply:
        gone.append(1)
        return shares(asked, **{"5": 1.0}) if len(gone) <= 6 else refuses(401)

    spec: dict[str, Any] = {"questions": ["quality"], "concurrency": 1}
    with ChatStub(script) as stub:
        study = judged_by(chat(stub.url, **spec))
        with pytest.raises(ServiceError, match="the key is not accepted"):
            judge(study)
    journal = study.scratch / "judgements" / "one.journal"
    assert len(journal.read_text().splitlines()) == 5
    with journal.open("a") as file:
        file.write('{"key": "torn')  # as `kill -9` in the middle of a line leaves it
    with ChatStub(lambda asked: shares(asked, **{"5": 1.0})) as stub:
        (done,) = judge(judged_by(chat(stub.url, **spec)))  # another address is the same judge
    assert done.counts == {"ok": 1, "reused": 5} and not journal.exists()
    assert len(read_judgements(study)) == JUDGED


KILLED = """
import os, signal, sys
from annotation.judges import run
from plumbline.study import load_study

asked, answer = [], run.JudgeProgress.answer

async def until_killed(*words):
    asked.append(words)
    if len(asked) == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return await answer(*words)

run.JudgeProgress.answer = until_killed
run.judge(load_study(*sys.argv[1:]), ["shares"])
"""


def test_a_killed_run_loses_nothing_that_was_said(generated: Study) -> None:
    """`kill -9` of a process as its recorded judge comes to the eighth question: seven answers are there."""
    draw_sample(generated)
    words = [str(generated.file), str(generated.folder.parent)]
    died = forks.run([sys.executable, "-c", KILLED, *words], cwd=ROOT, timeout=60)
    assert died.returncode == -signal.SIGKILL, died.stderr
    journal = generated.scratch / "judgements" / "shares.journal"
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 7
    (done,) = judge(generated, ["shares"])
    assert done.counts["reused"] == 7 and not journal.exists()
    frame = read_judgements(generated, ["shares"])
    assert len(frame) == 7 + done.counts["ok"] and frame["key"].is_unique and set(frame["status"]) == {"ok"}


def test_another_prompt_is_asked_anew_and_what_was_said_before_stays(judged_by: Callable[..., Study]) -> None:
    with ChatStub(lambda asked: says("4.5" if "decimal" in asked.message else "4")) as stub:
        judge(judged_by(chat(stub.url, score="text", questions=["quality"])))
        study = judged_by(chat(stub.url, prompt="pteb_paraphrase"))
        judge(study)
    frame = read_judgements(study)
    assert set(frame["question"]) == {"similarity"} and set(frame["score"]) == {4.5}
    assert len(pd.read_parquet(study.judgements / "one.parquet")) == 2 * JUDGED


def test_the_sample_studys_judges_answer_by_their_rule(generated: Study) -> None:
    draw_sample(generated)
    done = judge(generated)
    assert {one.judge: one.counts["unanswered"] for one in done} == {"shares": 0, "numbers": 0}
    frame = read_judgements(generated)
    assert set(frame["kind"]) == {"recorded"}
    unread = frame[frame["status"] == "failed"]
    assert set(unread["judge"]) == {"numbers"} and set(unread["text"].str[:-1]) == {"about "}
    judged = read_judged(generated)
    for name in demo_rule.JUDGES:
        file = ROOT / "studies" / "demo" / "judges" / f"{name}.jsonl"
        assert file.read_text(encoding="utf-8").splitlines() == demo_rule.lines(
            name, judged, file.parents[1] / "outputs", gold_pairs(generated.datasets, generated.file)
        )


HEAD = (
    "You are an expert evaluator of semantic textual similarity. Your task is to rate how similar two sentences are in"
    " meaning.\n\nPlease rate the semantic similarity between the following two sentences on a scale from 0.0 to 5.0"
    " using one decimal place:\n\n- 0.0-1.0: Completely different meanings\n- 1.1-2.0: Slightly related but mostly"
    " different\n- 2.1-3.0: Somewhat similar with some shared meaning\n- 3.1-4.0: Very similar with minor differences\n"
    "- 4.0-5.0: Essentially the same meaning\n\n"
)
ONLY = (
    "Only respond with a single decimal number from 0.0 to 5.0 (one decimal place). Do not provide explanations or"
    " additional text.\n\n"
)


def test_ptebs_prompts_stand_word_for_word() -> None:
    # PTEB, appendix D.1 and D.2.
    texts = {name: read_prompt(PROMPTS / "judges" / f"{name}.yaml", JudgePrompt).text for name in PTEBS}
    assert texts["pteb_sts"] == (
        f"{HEAD}{ONLY}Sentence 1: {{sentence1}}\nSentence 2: {{sentence2}}\n\nSimilarity rating:"
    )
    assert texts["pteb_paraphrase"] == (
        f"{HEAD}Original: {{original}}\n\nParaphrase: {{paraphrase}}\n\n{ONLY}Similarity rating:"
    )


def test_a_table_that_a_hand_has_changed_is_refused(judged_by: Callable[..., Study]) -> None:
    with ChatStub(lambda asked: says("4")) as stub:
        study = judged_by(chat(stub.url, score="text"))
        judge(study)
    path = study.judgements / "one.parquet"
    pd.read_parquet(path).assign(score=5.0).to_parquet(path)
    with pytest.raises(DataError, match=r"one\.parquet differs from what was written"):
        read_judgements(study)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"prompt": "pteb_sts", "score": "expected"}, "asks for decimals, which take several tokens"),
        ({"prompt": "own.yaml"}, "has the unknown variable {rubric}"),
    ],
)
def test_what_a_judge_cannot_be_asked_is_one_line(
    judged_by: Callable[..., Study], tmp_path: Path, changes: dict[str, Any], line: str
) -> None:
    (tmp_path / "own.yaml").write_text(json.dumps({**OWN, "variables": ["rubric"], "text": "{rubric}"}))
    study = judged_by(chat("http://127.0.0.1:9/v1", **changes))
    with pytest.raises(StudyError) as error:
        questionnaires(study)
    assert line in str(error.value)


def test_more_outputs_stay_judged_and_fewer_than_the_sample_are_refused(judged_by: Callable[..., Study]) -> None:
    study = judged_by(chat("http://127.0.0.1:9/v1"))
    assert len(draw_judged(study, 10)) == len(draw_judged(study)) == 10
    assert len(draw_judged(study, 5, keep=False)) == 5
    with pytest.raises(StudyError, match=r"--outputs 2 is less than `sample\.pairs: 3`"):
        draw_judged(study, 2)


STRATUM = ("en", "sts", "made", "en", "0")


@dataclass(frozen=True)
class Made:
    """Outputs as a study has its own."""

    study: Study
    pairs: list[Pair]
    supply: list[Supply] = field(default_factory=list)

    def of(self, name: str) -> list[Candidate]:
        assert name == "paraphrasing"
        return [Candidate(rank, STRATUM, one.key, lambda one=one: one) for rank, one in enumerate(self.pairs)]  # type: ignore[misc]

    def of_size(self, number: int) -> Made:
        """The same with so many pairs in its sample."""
        sample = self.study.sample.model_copy(update={"pairs": number})
        return replace(self, study=self.study.model_copy(update={"sample": sample}))


def test_no_near_duplicate_stands_beside_the_rated_ones(demo: Study) -> None:
    """120 texts, and 301 that differ by a word in thirteen: one of these counts, in a stratum of its own."""
    words = [[f"cluster{number}word{place}" for place in range(12)] for number in range(121)]
    texts = [
        " ".join([*words[number], f"own{which}"])
        for number in range(121)
        for which in range(301 if number == 60 else 1)
    ]
    source = Made(demo, [pair(number).model_copy(update={"original": text}) for number, text in enumerate(texts)])
    sample = PoolDrawing(source.of_size(100), ["paraphrasing"], []).sample()
    judged = _drawn(source.of_size(1000), ["paraphrasing"], sample)["paraphrasing"]
    assert [one.pair_id for one, _ in judged[:100]] == [one.pair_id for one in sample]
    single = "/".join(STRATUM)
    assert Counter(stratum for _, stratum in judged) == {single: 120, f"{single}/near 9": 1}
