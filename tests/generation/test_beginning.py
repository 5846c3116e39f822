"""`plumbline init`: a study made of a file runs as it stands."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml

from annotation.campaign.offering import ARGILLA, begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.sampling.queues import Queue
from annotation.sampling.sample import draw_sample, extend_sample
from annotation.verdicts.tables import display
from generation.datasets.loading import texts_in
from generation.datasets.local import load_local
from generation.flags import language_of
from generation.jobs import Plan
from generation.production import generate
from generation.study_of_file import NAMES
from plumbline import __main__
from plumbline.errors import DataError, StudyError
from plumbline.study import load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.reach import verdict_sizes
from tests.commands import here

TEXTS = [
    "The weather in the mountains changed quickly this morning.",
    "I would like to book a table for two people.",
    "The train to the city leaves every twenty minutes.",
    "Our garden is full of roses and small trees.",
    "She wrote a long letter to her brother in Canada.",
    "The museum opens at nine and closes at five.",
    "He has never learned how to ride a bicycle.",
    "Please send me the report before the end of the week.",
    "The children played in the park until it was dark.",
    "This recipe needs three eggs and a cup of flour.",
    "My neighbour bought a new car last month.",
    "The library has more than a million books.",
]
LABELS = ["a", "b"] * 6
SPLIT = ["train", "test"] * 6


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, where one stands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> None:
    assert __main__.run(["init", *words]) == 0


def test_the_study_is_run_and_sampled_as_it_stands(init: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"it's: #1": TEXTS, "Output": [f"{text} Indeed." for text in TEXTS]})
    frame.to_csv(init / "My texts.csv", index=False)
    run("My texts.csv", "--column", "text=it's: #1")
    said = capsys.readouterr().out
    assert "text: column \"it's: #1\", output: column 'Output'" in said
    assert "language: en (English)" in said
    assert said.endswith("Next: plumbline generate --study studies/my-texts.yaml\n")
    study = load_study("studies/my-texts.yaml")
    assert (study.sample.pairs, study.acceptance.min_pairs) == (12, 8)
    place = ["--study", str(study.file), "--exports", str(init / "exports")]
    dry = here("generate", *place, "--dry-run")
    assert dry.returncode == 0 and "no requests" in dry.stdout, dry.stderr
    assert here("generate", *place).returncode == 0
    sampled = here("sample", *place)
    assert sampled.returncode == 0, sampled.stderr
    assert "12 pairs drawn, and 0 positive and 1 negative controls" in sampled.stdout
    stood = here("status", *place)  # no embedding model is asked for
    assert "of 7 done; last sample" in stood.stdout and "scores" not in stood.stdout, stood.stderr
    scored = here("evaluate", *place)
    assert scored.returncode == 2 and "no models to score; add `evaluation`" in scored.stderr


def test_sample_says_that_raters_of_another_language_would_read_english_questions(init: Path) -> None:
    texts = [f"هذا هو النص رقم {number}" for number in range(3)]
    pd.DataFrame({"text": texts, "output": [f"{text}." for text in texts]}).to_csv(init / "own.csv", index=False)
    run("own.csv", "--language", "ar")
    place = ["--study", str(init / "studies" / "own.yaml"), "--exports", str(init / "exports")]
    assert here("generate", *place).returncode == 0
    assert "Raters of texts in ar see questions in English; to show them" in here("sample", *place).stdout


@pytest.mark.parametrize(
    ("columns", "task", "kind"),
    [
        ({"Sentence1": TEXTS, "sentence2": TEXTS[::-1], "gold": range(12)}, "sts", ".csv"),
        ({"text_a": TEXTS, "text_b": TEXTS[::-1], "label": [0, 1] * 6}, "pair_classification", ".tsv"),
        ({"sentence1": TEXTS, "sentence2": TEXTS}, "bitext_mining", ".jsonl"),
        ({"utterance": TEXTS, "intent": LABELS}, "clustering", ".tsv"),
        ({"utterance": TEXTS, "intent": LABELS, "split": SPLIT}, "classification", ".jsonl"),
        ({"text": TEXTS}, "bitext_mining", ".csv"),
    ],
)
def test_columns_are_guessed_and_the_texts_are_asked_for(
    init: Path, columns: dict[str, list[object]], task: str, kind: str
) -> None:
    frame, file = pd.DataFrame(columns), init / f"texts{kind}"
    if kind == ".jsonl":
        rows = frame.to_dict(orient="records")
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    else:
        frame.to_csv(file, index=False, sep="," if kind == ".csv" else "\t")
    run(file.name)
    study = load_study("studies/texts.yaml")
    assert study.datasets[0].task == task
    dry = here("generate", "--study", str(study.file), "--exports", str(init / "exports"), "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "12" in next(line for line in dry.stdout.splitlines() if line.startswith("total")).split()


@pytest.mark.parametrize("kind", [".csv", ".jsonl"])
def test_sets_of_paraphrases_are_used_as_they_were_published(
    init: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [[f"{text} Indeed.", f"Truly: {text}"] for text in TEXTS]
    frame = pd.DataFrame({"text": TEXTS, "paraphrases": sets, "category": LABELS, "source": "quiz"})
    if kind == ".csv":
        frame.to_csv(init / "sets.csv", index=False)
    else:
        frame.to_json(init / "sets.jsonl", orient="records", lines=True)
    run(f"sets{kind}")
    said = capsys.readouterr().out
    assert "column 'paraphrases' holds lists; `number: 1` in the study takes each text's first" in said
    study = load_study("studies/sets.yaml")
    assert study.datasets[0].task == "bitext_mining"
    made = here("generate", "--study", str(study.file), "--exports", str(init / "exports"))
    assert "12 texts transformed" in made.stdout, made.stderr
    run(f"sets{kind}", "--name", "labelled", "--column", "label=category")
    assert load_study("studies/labelled.yaml").datasets[0].task == "clustering"


def test_columns_that_may_be_systems_outputs_are_asked_about_with_commands(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"original": TEXTS, "ours v2": TEXTS[::-1], "DeepL": [f"{text} Yes." for text in TEXTS]})
    frame.assign(place="shelf", id=range(12)).to_csv("trans.csv", index=False)
    pd.DataFrame({"text": TEXTS, "tongue": "en", "system": ["a", "b"] * 6}).to_csv("tongues.csv", index=False)
    commands = []
    for file in ("trans.csv", "tongues.csv"):
        with pytest.raises(DataError) as error:
            run(file)
        assert not (init / "studies").exists() or len(list((init / "studies").glob("*.yaml"))) == 2
        commands += [shlex.split(line.partition("plumbline init ")[2]) for line in str(error.value).splitlines()]
        if file == "trans.csv":
            run(*commands[0], "--name", "systems")
            assert len(load_study("studies/systems.yaml").kinds) == 2
            run(*commands[1], "--name", "alone")
            assert "not used: 'ours v2', 'DeepL', 'place', 'id'; " in capsys.readouterr().out
    assert "output=NAME" in commands[2]
    run(*commands[3])
    assert "not used: 'tongue', 'system'; " in capsys.readouterr().out
    assert not load_study("studies/alone.yaml").transforming["paraphrasing"].outputs


def test_a_column_of_lists_is_no_column_of_texts(init: Path) -> None:
    pd.DataFrame({"text": [[text, "Another."] for text in TEXTS]}).to_csv(init / "lists.csv", index=False)
    with pytest.raises(DataError, match=r"'sentence1' holds lists, .* in 12 of 12 rows; write one text a row"):
        run("lists.csv", "--language", "en")
    assert not (init / "studies" / "lists.yaml").exists()


def test_lists_that_a_task_needs_are_read_from_cells(init: Path) -> None:
    row = 'who sings,"[\'the bird\', \'the ""old"" choir\']","[""a stone""]"\n'
    (init / "ranked.csv").write_text(f"query,positive,negative\n{row}", encoding="utf-8")
    spec = DatasetSpec(name="ranked", task="reranking", path="ranked.csv", language="en")
    rows = load_local(spec, init / "ranked.csv").splits["test"]
    assert rows["positive"].tolist() == [["the bird", 'the "old" choir']] and rows["negative"].tolist() == [["a stone"]]


def test_nothing_is_overwritten_and_nothing_is_left_of_what_cannot_be_read(init: Path) -> None:
    (init / "texts.csv").write_text("text\n" + "\n".join(TEXTS), encoding="utf-8")
    run("texts.csv")
    before = (init / "studies" / "texts.yaml").read_bytes()
    with pytest.raises(StudyError, match=r"texts\.yaml exists already"):
        run("texts.csv", "--language", "de")
    assert (init / "studies" / "texts.yaml").read_bytes() == before
    (init / "bad.csv").write_text("sentence1,sentence2,score\n" + "a house,a home,much\n" * 12, encoding="utf-8")
    with pytest.raises(DataError, match="field 'score' is not a number"):
        run("bad.csv", "--language", "en")
    assert sorted(path.name for path in (init / "studies").iterdir()) == ["texts.yaml"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["ok", "12", "x"] * 10, "add --language CODE"),
        ([*TEXTS, *["Das Wetter in den Bergen hat sich heute schnell geändert."] * 9], "perhaps en, English"),
        (TEXTS[:3], "perhaps en, English"),
    ],
)
def test_a_language_that_is_not_certain_is_asked_for(texts: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        language_of(texts, least=10, share=0.95)
    assert language_of(TEXTS, least=10, share=0.95) == "en"


def test_a_first_line_of_unknown_names_is_asked_about_and_its_use_printed(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (init / "saetze.csv").write_text("Satz,Nr\n" + "\n".join(f"{text},{n}" for n, text in enumerate(TEXTS)))
    with pytest.raises(DataError, match=r"the first line is 'Satz', 'Nr'\. If these are names, .* put a line"):
        run("saetze.csv")
    run("saetze.csv", "--column", "text=Satz")
    assert "the first line of saetze.csv is read as column names" in capsys.readouterr().out
    (init / "plain.csv").write_text("text\n" + "\n".join(TEXTS))
    run("plain.csv")
    assert "first line" not in capsys.readouterr().out
    assert load_study("studies/plain.yaml").sample.pairs == len(TEXTS)


@pytest.mark.parametrize("by_column", [False, True])
def test_a_study_in_two_languages_asks_of_each_verdict_what_it_can_have(init: Path, by_column: bool) -> None:
    """Twelve sentences beside others in another language, or six in each of two: 12 pairs are 6 a language."""
    columns = {"label": LABELS, "text": TEXTS, "language": ["en", "de"] * 6}
    if not by_column:
        columns = {"sentence1": TEXTS, "sentence2": [f"{text} Ja." for text in TEXTS], "score": ["1", "4"] * 6}
    pd.DataFrame(columns).to_csv(init / "two.csv", index=False)
    run("two.csv", "--language", "en" if by_column else "en-de")
    study = load_study("studies/two.yaml")
    assert (study.sample.pairs, study.acceptance.min_pairs) == (12, 4)
    texts = {text for one in study.datasets for text in texts_in(one, study.file.parent)}
    sizes = verdict_sizes(study, dict.fromkeys(study.kinds, texts))
    assert {one.key for one in sizes} == {("en",), ("de",)} and not any(one.lacks(study.acceptance) for one in sizes)


def test_what_was_asked_stands_in_the_languages_of_the_texts(init: Path) -> None:
    outputs = [f"{text} Ja." for text in TEXTS]
    pd.DataFrame({"text": TEXTS, "language": ["en", "de"] * 6, "output": outputs}).to_csv("asked.csv", index=False)
    run("asked.csv")
    (rewritten,) = load_study("studies/asked.yaml").kinds.values()
    assert set(rewritten.raters["asked"]) == {"en", "de"}
    assert "read it in English" not in Path("studies/asked.yaml").read_text(encoding="utf-8")
    pd.DataFrame({"text": TEXTS, "language": ["it", "pl"] * 6, "output": outputs}).to_csv("further.csv", index=False)
    run("further.csv")
    assert "# Raters of texts in it, pl read it in English" in Path("studies/further.yaml").read_text(encoding="utf-8")


def test_a_study_asks_of_no_language_more_pairs_than_it_has_texts(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine English texts and three German: of the twelve pairs German has three, and not half."""
    pd.DataFrame({"text": TEXTS, "language": ["en"] * 9 + ["de"] * 3}).to_csv(init / "uneven.csv", index=False)
    run("uneven.csv")
    said = capsys.readouterr().out
    assert "language: en (English, 9), de (German, 3)" in said and "\nNext: plumbline generate " in said
    assert "language: en  # where the column `language` is empty\n" in Path("studies/uneven.yaml").read_text("utf-8")
    study = load_study("studies/uneven.yaml")
    assert (study.sample.pairs, study.acceptance.min_pairs) == (12, 2)


def test_help_lists_what_columns_hold_and_shows_both_forms_of_systems(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    said = " ".join(capsys.readouterr().out.split())
    assert f"holds WHAT: {', '.join(NAMES)} (may be repeated)" in said
    assert "text,ours,theirs plumbline init outputs.csv --column output=ours --column output=theirs" in said
    assert "text,system,output plumbline init outputs.csv" in said


def test_systems_are_compared_on_the_same_originals_and_raters_do_not_learn_which_is_which(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(text, system, f"{text} {system}!") for text in TEXTS for system in ("Big Model", "7b")]
    frame = pd.DataFrame(rows, columns=["text", "system", "output"])
    frame.to_csv(init / "long.csv", index=False)
    run("long.csv")
    said = capsys.readouterr().out
    assert "systems (values of column 'system'): big_model ('Big Model'), system_7b ('7b')" in said
    assert "-> prompts/rubrics/long.yaml: questions to make your own" in said.replace(f"{Path.cwd()}/", "")
    with_own = Path("studies/long.yaml").read_text(encoding="utf-8").replace("# rubric: long", "rubric: long")
    (rules,) = re.findall("#   write (rules: .*)", with_own)
    with_own = re.sub("threshold: 3.0.*", rules, with_own)
    (own := Path("studies/own.yaml")).write_text(with_own, encoding="utf-8")
    assert [question.name for question in load_rubric(load_study(own)).questions] == ["quality", "ease", "tone"]
    wide = pd.read_csv(init / "studies" / "long.csv")
    assert list(wide["text"]) == TEXTS and list(wide["7b"]) == [f"{text} 7b!" for text in TEXTS]
    study = load_study("studies/long.yaml", exports=str(init / "exports"))
    generate(study)
    pairs = draw_sample(study)
    assert Counter(pair.transformation for pair in pairs) == {"big_model": 12, "system_7b": 12}
    assert {Queue.of(pair).dataset("long") for pair in pairs} == {"long-systems-EN"}
    rubric = load_rubric(study)
    assert rubric.pool("systems") == rubric.pool("big_model") and "model" not in str(rubric.pool("systems")).lower()
    # The other form of file gives the same study; a second output of a system for a text is refused.
    wide.assign(system="both").to_csv(init / "wide.csv", index=False)
    capsys.readouterr()
    run("wide.csv", "--column", "output=Big Model", "--column", "output=7b")
    said = capsys.readouterr().out
    assert "systems (columns): big_model ('Big Model'), system_7b ('7b')" in said and "not used: 'system'" in said
    assert load_study("studies/wide.yaml").kinds.keys() == study.kinds.keys()
    pd.concat([frame, frame.head(1).assign(output="Another one.")]).to_csv(init / "twice.csv", index=False)
    with pytest.raises(DataError, match="row 26 has a second output of 'Big Model' for 'The weather"):
        run("twice.csv")
    assert not (init / "studies" / "twice.csv").exists()
    frame.replace({"system": {"7b": ""}}).to_csv(init / "gaps.csv", index=False)
    with pytest.raises(DataError, match="row 3 has no 'system'"):
        run("gaps.csv")
    with pytest.raises(DataError, match="no column '8b' among"):  # the first of two is checked, too
        run("wide.csv", "--name", "typo", "--column", "output=8b", "--column", "output=7b")


def test_questions_to_start_from_are_in_no_language_that_the_texts_lack(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"text": TEXTS, "lng": ["es", "en"] * 6, "Opus-MT": [f"{text}!" for text in TEXTS]})
    frame.assign(ours=[f"{text}?" for text in TEXTS]).to_csv(init / "two.csv", index=False)
    run("two.csv", "--column", "output=Opus-MT", "--column", "output=ours")
    assert "output: columns 'Opus-MT', 'ours', language: column 'lng'\n" in capsys.readouterr().out
    study, rubric = load_study("studies/two.yaml"), Path("prompts/rubrics/two.yaml").read_text(encoding="utf-8")
    assert texts_in(study.datasets[0], Path("studies")) == {("en", "bitext_mining"), ("es", "bitext_mining")}
    assert " de:" not in rubric and set(yaml.safe_load(rubric)["guidelines"]) == {"en"}
    assert "`es: ...`" in rubric  # the place for what is missing
    frame.assign(ours=frame["Opus-MT"], lng="de").to_csv(init / "three.csv", index=False)
    run("three.csv", "--column", "output=Opus-MT", "--column", "output=ours")
    rubric = Path("prompts/rubrics/three.yaml").read_text(encoding="utf-8")
    assert set(yaml.safe_load(rubric)["guidelines"]) == {"en", "de"} and "Raters of texts in" not in rubric


def test_a_renamed_question_is_refused_before_a_generator_is_paid_with_each_line_of_the_study(init: Path) -> None:
    pd.DataFrame({"text": TEXTS, "a": TEXTS[::-1], "b": [f"{text} Yes." for text in TEXTS]}).to_csv("two.csv")
    run("two.csv", "--column", "output=a", "--column", "output=b")
    file, rubric = init / "studies" / "two.yaml", init / "prompts" / "rubrics" / "two.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("# rubric: two", "rubric: two"), encoding="utf-8")
    rubric.write_text(rubric.read_text(encoding="utf-8").replace("name: quality", "name: sense"), encoding="utf-8")
    lines = [n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "quality: 1" in line]
    for command in ("generate", "sample"):
        with pytest.raises(StudyError) as error:
            __main__.run([command, "--study", str(file), "--exports", str(init / "exports")])
        faults = str(error.value).splitlines()
        assert [re.findall(r"^.*/two\.yaml: .*'quality'.* \(line (\d+)\)$", fault) for fault in faults] == [
            [str(line)] for line in lines
        ]


def test_a_study_with_wrong_keys_names_its_missing_files_too_each_with_its_line(init: Path) -> None:
    content = {
        "name": "f",
        "datasets": [{"name": "one", "task": "sts", "path": "absent.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "rubric": "absent",
        "training": "absent.jsonl",
        "sample": {"pair": 3},
        "acceptance": {"threshold": "much"},
    }
    (init / "studies").mkdir()
    Path("studies/f.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    with pytest.raises(StudyError) as error:
        __main__.run(["sample", "--study", "studies/f.yaml", "--exports", str(init / "exports")])
    lines = Path("studies/f.yaml").read_text(encoding="utf-8").splitlines()
    faults = [re.fullmatch(r"studies/f\.yaml: (.*) \(line ([0-9]+)\)", line) for line in str(error.value).splitlines()]
    assert [lines[int(fault[2]) - 1].strip() for fault in faults if fault] == [
        "pair: 3", "threshold: much", "- paraphrasing", "rubric: absent", "path: absent.csv", "training: absent.jsonl",
    ]  # fmt: skip
    assert all(faults)


def test_a_right_answer_that_no_longer_fits_has_its_line_in_the_study(init: Path) -> None:
    pd.DataFrame({"text": TEXTS, "a": TEXTS[::-1], "b": [f"{text} Yes." for text in TEXTS]}).to_csv("two.csv")
    run("two.csv", "--column", "output=a", "--column", "output=b")
    file, rubric = init / "studies" / "two.yaml", init / "prompts" / "rubrics" / "two.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("# rubric: two", "rubric: two"), encoding="utf-8")
    words = rubric.read_text(encoding="utf-8").replace("scale: [1, 2, 3, 4, 5]", "scale: [2, 3, 4, 5]")
    rubric.write_text(words.replace("      1: {en: something else}\n", ""), encoding="utf-8")
    lines = [n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "quality: 1" in line]
    with pytest.raises(StudyError) as error:
        load_rubric(load_study(file))
    faults = str(error.value).splitlines()
    assert [re.findall(r"^.*/studies/two\.yaml: .*quality: .* \(line (\d+)\)$", fault) for fault in faults] == [
        [str(line)] for line in lines
    ]


@pytest.mark.parametrize("questions", ["5", "{name: quality}"])
def test_questions_that_are_no_list_are_the_rubrics_own_fault(init: Path, questions: str) -> None:
    pd.DataFrame({"text": TEXTS, "output": TEXTS[::-1]}).to_csv("one.csv")
    run("one.csv")
    study, folder = load_study("studies/one.yaml"), init / "prompts" / "rubrics"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{study.rubric}.yaml").write_text(f"name: mine\nquestions: {questions}\npools: 5\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"questions.*list"):
        load_rubric(study, folder)


def test_systems_have_names_that_can_be_read_and_are_told_apart(init: Path, capsys: pytest.CaptureFixture[str]) -> None:
    systems = ["Überblick", "模型", "Модель", "GPT-4", "gpt 4", "model", "paraphrasing"]
    rows = [(text, system, f"{text} {system}!") for text in TEXTS for system in systems]
    file = init / "named\nraters: {people: [eve]}\n#.csv"  # lines of a file's name are none of the study
    pd.DataFrame(rows, columns=["text", "system", "output"]).to_csv(file, index=False)
    run(file.name, "--name", "named")
    study = load_study("studies/named.yaml")
    names = ["uberblick", "system_2", "system_3", "gpt_4", "gpt_4_5", "system_model", "system_paraphrasing"]
    assert list(study.kinds) == names and study.raters.people is None
    assert [study.transforming[name].title for name in names] == systems
    assert [display(name) for name in names] == systems  # in tables and pages as the file writes them
    assert "system_2 ('模型'), system_3 ('Модель')" in capsys.readouterr().out


def test_the_column_of_languages_is_used_checked_and_read_in_any_usual_form(
    init: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        (text, language, system, f"{text} {system}!")
        for text, language in zip(TEXTS, ["eng", "de-AT", "", "EN"] * 3, strict=True)
        for system in ("a", "b")
    ]
    frame = pd.DataFrame(rows, columns=["text", "Lang", "system", "output"])
    frame.to_csv(init / "two.csv", index=False)
    run("two.csv")
    assert "language: column 'Lang'" in (said := capsys.readouterr().out)
    assert "language: en (English, 9), de (German, 3)" in said
    study = load_study("studies/two.yaml", exports=str(init / "exports"))
    generate(study)
    assert Counter(pair.language for pair in draw_sample(study)) == {"en": 18, "de": 6}
    frame.rename(columns={"Lang": "Sprache"}).to_csv(init / "named.csv", index=False)
    run("named.csv", "--column", "language=Sprache", "--language", "fr")  # for the rows that name none
    assert "fr (French, 3)" in capsys.readouterr().out
    frame.replace({"Lang": {"de-AT": "Germn", "EN": "klingon"}}).to_csv(init / "bad.csv", index=False)
    with pytest.raises(DataError) as error:
        run("bad.csv")
    first, second = str(error.value).splitlines()  # once for each value, not for each row
    assert "bad.csv: row 4, field 'Lang': language 'Germn' is not known" in first and "row 8" in second
    with pytest.raises(DataError, match="'en-de' is a pair of languages, but the file has single texts"):
        run("two.csv", "--name", "pair", "--language", "en-de")


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([*["Another one."] * 11, " "], ""),
        ([""] * 12, "made.csv: no text has an output of 'output'; add it"),
        ([f"{n}" for n in range(12)], ""),
    ],
)
def test_only_what_generate_accepts_is_written(init: Path, outputs: list[str], said: str) -> None:
    frame = pd.DataFrame({"text": TEXTS, "output": outputs})
    frame.to_csv(init / "made.csv", index=False)
    if not said:
        run("made.csv")
        generate(load_study("studies/made.yaml", exports=str(init / "exports")))
        return
    with pytest.raises(DataError, match=said):
        run("made.csv")
    assert not list((init / "studies").iterdir())


def test_a_text_with_two_outputs_and_systems_without_a_text_in_common_are_refused(init: Path) -> None:
    twice = pd.DataFrame({"text": [*TEXTS, TEXTS[0]], "output": [*TEXTS[::-1], "Another one."]})
    twice.to_csv(init / "twice.csv", index=False)
    with pytest.raises(DataError, match="row 14 has a second 'output' for 'The weather.* add a column `system`"):
        run("twice.csv")
    apart = pd.DataFrame({"text": TEXTS, "a": [*TEXTS[:6], *[""] * 6], "b": [*[""] * 6, *TEXTS[6:]]})
    apart.to_csv(init / "apart.csv", index=False)
    with pytest.raises(DataError, match="apart.csv: no text has an output of 'b' and one of 'a'"):
        run("apart.csv", "--column", "output=a", "--column", "output=b")
    rows = [(text, system, text if system == "b" else "") for text in TEXTS for system in ("a", "b")]
    pd.DataFrame(rows, columns=["text", "system", "output"]).to_csv(init / "long.csv", index=False)
    with pytest.raises(DataError, match=r"^long\.csv: no text has an output of 'a'"):
        run("long.csv")
    assert not list((init / "studies").iterdir())


def test_a_sheet_of_excel_is_asked_for_by_name(init: Path) -> None:
    frame = pd.DataFrame({"text": TEXTS, "output": [f"{text} Indeed." for text in TEXTS]})
    with pd.ExcelWriter(init / "book.xlsx") as book:
        frame.to_excel(book, sheet_name="Alpha, 1", index=False)
        frame.iloc[:4].to_excel(book, sheet_name="Beta", index=False)
        pd.DataFrame().to_excel(book, sheet_name="Empty")
    with pytest.raises(DataError, match=r"has 2 sheets with rows \(Alpha, 1, Beta\); name one \(--sheet, or `sheet`"):
        run("book.xlsx")
    revisions = set()
    for sheet, number in (("Alpha, 1", 12), ("Beta", 4)):
        run("book.xlsx", "--sheet", sheet, "--name", sheet[0].lower(), "--language", "en")
        study = load_study(f"studies/{sheet[0].lower()}.yaml", exports=str(init / "exports"))
        generate(study)
        assert len(draw_sample(study)) == number
        revisions |= {load_local(study.datasets[0], init / "book.xlsx").revision, Plan(study).makers["rewritten"].hash}
    assert len(revisions) == 4
    with pytest.raises(DataError, match="no sheet 'Gamma'; it has Alpha, 1, Beta, Empty"):
        run("book.xlsx", "--sheet", "Gamma", "--name", "c")
    frame.to_csv(init / "plain.csv", index=False)
    with pytest.raises(DataError, match="only Excel files have sheets"):
        run("plain.csv", "--sheet", "Alpha")


def test_one_system_is_a_transformation_like_any_other(init: Path) -> None:
    rows = [(text, "only", f"{text} Indeed!") for text in TEXTS]
    pd.DataFrame(rows, columns=["text", "system", "output"]).to_csv(init / "one.csv", index=False)
    run("one.csv")
    study = load_study("studies/one.yaml", exports=str(init / "exports"))
    generate(study)
    assert {pair.transformation for pair in draw_sample(study)} == {"rewritten"}


def test_a_further_system_gets_the_originals_of_the_others(init: Path) -> None:
    frame = pd.DataFrame({"text": TEXTS} | {name: [f"{text} {name}!" for text in TEXTS] for name in ("a", "b", "c")})
    frame.loc[3, "b"] = None  # an original without an output of some system is not drawn
    frame.to_csv(init / "texts.csv", index=False)
    run("texts.csv", "--column", "output=b", "--column", "output=a")
    file = init / "studies" / "texts.yaml"
    file.write_text(re.sub("pairs: [0-9]+", "pairs: 6", re.sub("min_pairs: [0-9]+", "min_pairs: 5", file.read_text())))
    first = study = load_study(file, exports=str(init / "exports"))
    generate(study)
    pairs = draw_sample(study)
    originals = {pair.original for pair in pairs}
    assert len(originals) == 6 and len(pairs) == 12 and TEXTS[3] not in originals
    begin_offering(CampaignRecords(first), ARGILLA, load_rubric(first))
    parts = file.read_text().partition("  - name: a\n")
    more = (parts[1] + parts[2].partition("seeds:")[0]).replace("name: a\n", "name: c\n").replace("'a'", "'c'")
    file.write_text("".join([parts[0], more, *parts[1:]]).replace("pairs: 6", "pairs: 8"))
    study = load_study(file, exports=str(init / "exports"))
    generate(study)
    extend_sample(study, "a third system")
    after = CampaignRecords(study).pairs
    assert {pair.pair_id for pair in pairs} <= {pair.pair_id for pair in after}
    by_system = {name: {pair.original for pair in after if pair.transformation == name} for name in ("a", "b", "c")}
    assert by_system["a"] == by_system["b"] == by_system["c"] > originals and len(by_system["c"]) == 8
