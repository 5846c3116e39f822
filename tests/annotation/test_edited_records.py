"""An adversary with an editor: each record of a judged study is changed by hand, and the next command says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign import rubric
from annotation.campaign.offering import ARGILLA, begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.ratings.decisions import decide
from annotation.records import RuleSet
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import looked_at
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from evaluation.sources import Folder
from evaluation.units import plan_units
from generation.output_statistics import flagged_outputs
from generation.production import generate, read_transformed
from plumbline.errors import DataError, PlumblineError, StudyError
from plumbline.manifest import Manifest, stage
from plumbline.prompts import PROMPTS
from plumbline.records import DriftRecord, Rating, TransformedText
from plumbline.store import write_json, write_table
from plumbline.study import Study
from tests.annotation.ratings.test_review import rate
from tests.concluded import concluded
from tests.conftest import make_variant
from tests.shared import generate_once

OUTPUTS = "transformations/paraphrasing/1337.parquet"
PARTS = {"transformations": ["paraphrasing", "translation"], "sample": {"pairs": 8}}
Make = Callable[..., Study]


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study that was generated, offered, rated and judged; not to be written to."""
    folder = tmp_path_factory.mktemp("judged")
    study = make_variant(folder)(**PARTS)
    generate_once(study)
    draw_sample(study)
    fix_rules(CampaignRecords(study))
    begin_offering(CampaignRecords(study), ARGILLA, load_rubric(study))
    rate(study)
    decide(study, "a", exclude=True, reason="fails controls")
    accept(study)
    return folder


@pytest.fixture
def study(judged_once: Path, tmp_path: Path, variant: Make) -> Study:
    shutil.copytree(judged_once / "exports", tmp_path / "exports")
    return variant(**PARTS)


def said_by(command: Callable[[], object]) -> str:
    """The one line that a command ends with; empty where it does not mind."""
    try:
        command()
    except PlumblineError as error:
        return str(error)
    return ""


def checked(study: Study) -> str:
    """What evaluation and reports say before they use verdicts."""
    return said_by(lambda: looked_at(Evidence(study)))


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    changed = change(content)
    path.write_text(json.dumps(content if changed is None else changed, indent=1), encoding="utf-8")


def test_a_print_out_that_was_edited_or_deleted_changes_nothing(study: Study) -> None:
    names = ("verdicts.json", "agreement.json", "pair_means.parquet")
    before, printed = concluded(study), [(study.folder / name).read_bytes() for name in names]
    for change in (lambda path: path.write_bytes(b"[]"), lambda path: path.unlink()):
        for name in names:
            change(study.folder / name)
        found = looked_at(Evidence(study), study.sample.seed)
        assert found.verdicts == before.verdicts and found.groups == before.groups and found.means.equals(before.means)
    accept(study)
    assert [(study.folder / name).read_bytes() for name in names] == printed and len(CampaignRecords(study).looks) == 1


def test_what_verdicts_rest_on_must_be_there(study: Study, tmp_path: Path) -> None:
    for name in ("pairs.parquet", "ratings.parquet", "rules.json", "sample.json"):
        (study.folder / name).rename(tmp_path / name)
        assert f"{name} is gone" in checked(study)
        (tmp_path / name).rename(study.folder / name)


def test_evidence_that_was_edited_emptied_or_deleted_is_refused(study: Study, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        date = next(key for key in entries[0] if key in ("fixed_at", "at", "decided_at"))
        entries[0][date] = "2020-01-01T00:00:00Z"

    rules, looks = lambda study: CampaignRecords(study).rules, lambda study: CampaignRecords(study).looks
    commands: dict[str, Callable[[Study], object]] = {
        "rules.json": rules, "looks.json": looks, "decisions.json": accept, "offered.json": draw_sample,
    }  # fmt: skip
    drawn_from = (study.folder / "sample.json").read_bytes()
    edit(study.folder / "sample.json", lambda rows: [{**row, "without": ["wrong_language"]} for row in rows])
    assert "sample.json differs from what was written" in checked(study)
    (study.folder / "sample.json").write_bytes(drawn_from)
    for name, command in commands.items():
        shutil.copyfile(study.folder / name, tmp_path / name)
        said = partial(said_by, partial(command, study))
        edit(study.folder / name, change)
        assert f"{name} differs from what was written" in said()
        write_json(study.folder / name, list[RuleSet]())
        line = said()
        assert f"{name} differs from what was written" in line or f"{name} is damaged; restore it from a copy" in line
        (study.folder / name).unlink()
        assert f"{name} is gone; restore it from a copy" in said()
        (tmp_path / name).rename(study.folder / name)


@pytest.mark.parametrize("kept", ["offered.json", "rules.json"])
def test_a_manifest_that_was_deleted_does_not_switch_the_checks_off(study: Study, kept: str) -> None:
    edit(study.folder / "looks.json", lambda looks: [{**looks[0], "n_ratings": 1}])
    write_table(study.folder / "ratings.parquet", CampaignRecords(study).ratings.assign(value=5), Rating)
    for name in {"offered.json", "manifest.json"} - {kept}:
        (study.folder / name).unlink()
    rules = lambda study: CampaignRecords(study).rules  # noqa: E731
    for command in (accept, draw_sample, rules) if kept == "offered.json" else (accept, rules):
        line = said_by(lambda command=command: command(study))  # type: ignore[misc]
        assert "manifest.json is missing, but " in line and "exists; restore it from a copy" in line
    with stage(study, "generation"):  # the next command begins another manifest
        pass
    assert "manifest.json has no entry for " in said_by(lambda: accept(study))


def test_answers_to_controls_that_were_taken_away_are_missed(study: Study) -> None:
    (study.folder / "control_ratings.parquet").unlink()
    assert "control_ratings.parquet is gone; restore it from a copy, or move ratings.parquet away too" in checked(study)
    assert "control_ratings.parquet is gone" in said_by(lambda: accept(study))


def test_outputs_that_nobody_rated_and_that_were_swapped_are_refused(study: Study) -> None:
    rated = {pair.key for pair in CampaignRecords(study).pairs}
    rows = read_transformed(study, "paraphrasing", 1337)
    others = [row if row.key in rated else row.model_copy(update={"output": "Bananas."}) for row in rows]
    assert others != rows
    path = study.transformation_file("paraphrasing", 1337)
    write_table(path, others, TransformedText)
    says = "paraphrasing/1337.parquet differs from what was written (edited by hand, or from another copy); restore it"
    for command in (draw_sample, flagged_outputs, generate):
        assert says in said_by(partial(command, study))
    found = [one.model_copy(update={"decision": "accepted"}) for one in concluded(study).verdicts]
    assert says in said_by(lambda: plan_units(Folder(study), found, CampaignRecords(study).pairs))
    path.unlink()
    generate(study)
    assert [row.output for row in read_transformed(study, "paraphrasing", 1337)] == [row.output for row in rows]


@pytest.fixture
def reworded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], None]], None]:
    """Change the study's rubric, as an editor would change its file."""
    content = yaml.safe_load((PROMPTS / "rubrics" / "hteb.yaml").read_text(encoding="utf-8"))
    (tmp_path / "rubrics").mkdir()
    load = rubric.load_rubric

    def write(change: Callable[[Any], None]) -> None:
        change(content)
        (tmp_path / "rubrics" / "hteb.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        for module in ("campaign.records", "sampling.sample"):
            monkeypatch.setattr(f"annotation.{module}.load_rubric", lambda study: load(study, tmp_path / "rubrics"))

    return write


def without_quality(content: Any) -> None:
    content["questions"] = [one for one in content["questions"] if one["name"] != "quality"]
    for pool in content["pools"].values():
        pool.get("questions", {}).pop("quality", None)
        pool.pop("expected", None)


def with_other_word(content: Any) -> None:
    content["questions"][0]["points"][3]["de"] = "gut genug"


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("change", "says"),
    [(without_quality, "rubric.questions.quality is gone"), (with_other_word, "quality.points.3.de annehmbar: ")],
)
def test_a_rubric_that_changed_after_the_first_rating_needs_its_reason_and_every_report_says_so(
    study: Study, reworded: Any, change: Callable[[Any], None], says: str
) -> None:
    reworded(change)
    assert "the rubric changed after the verdicts were reached" in checked(study)
    with pytest.raises(StudyError, match="changed after the first rating") as caught:
        accept(study)
    assert says in str(caught.value) and "--amend" in str(caught.value)
    accept(study, "a slip of the pen")
    assert len(CampaignRecords(study).looks) == 2
    page = write_report(study)[0].read_text(encoding="utf-8")
    assert "The rules were amended after the first rating" in page and says.partition(":")[0] in page
    assert "Transformation quality: does the new text do what was asked" in page  # what raters read


def test_a_sample_that_was_offered_is_not_replaced_and_goes_on(study: Study, variant: Make) -> None:
    for name in ("ratings.parquet", "control_ratings.parquet"):  # a publish that was killed: nobody has answered
        (study.folder / name).unlink()
    before = {name: (study.folder / name).read_bytes() for name in ("pairs.parquet", "controls.parquet", "sample.json")}
    for sample in ({"pairs": 8, "seed": 7}, {"pairs": 7}, {"pairs": 8, "repeats": 3}):
        line = said_by(partial(draw_sample, variant(**(PARTS | {"sample": sample}))))
        assert "was offered to raters (argilla, " in line and "but the study now asks for other pairs" in line
    draw_sample(study)
    assert {name: (study.folder / name).read_bytes() for name in before} == before


def swapped(study: Study, *, rated: bool) -> None:
    """Another text for one paraphrase that was rated, or for one that nobody rated."""
    keys = {pair.key for pair in CampaignRecords(study).pairs}
    rows = read_transformed(study, "paraphrasing", 1337)
    key = next(row.key for row in rows if (row.key in keys) == rated and row.status == "ok")
    others = [row.model_copy(update={"output": "Bananas."}) if row.key == key else row for row in rows]
    Manifest.of(study).write_table(OUTPUTS, others, TransformedText)


@pytest.mark.parametrize(
    ("rated", "says"),
    [
        (True, "1 of 8 rated texts changed (first pair "),
        (False, "the outputs of sample_sts in English with seed 1337 are not those that the sample was drawn from"),
    ],
)
def test_outputs_that_were_swapped_under_a_verdict_are_not_evaluated(study: Study, rated: bool, says: str) -> None:
    found = [one.model_copy(update={"decision": "accepted"}) for one in concluded(study).verdicts]

    def decisions(**options: bool) -> set[tuple[str, str]]:
        units = plan_units(Folder(study), found, CampaignRecords(study).pairs, **options)
        return {(u.decision.status, u.decision.reason) for u in units if u.transformation == "paraphrasing"}

    assert decisions() == {("evaluated", "")}
    swapped(study, rated=rated)
    refused = {reason for status, reason in decisions() if status == "left_out"}
    assert any(reason.startswith(says) for reason in refused)
    assert {("included_rejected", reason) for reason in refused} <= decisions(include_rejected=True)
    assert "of paraphrasing are not those" not in checked(study)  # the verdict itself still follows from its ratings


def test_a_verdict_on_one_kind_of_generator_does_not_cover_another(study: Study, variant: Make) -> None:
    model = {"model": "plumbline-sample", "revision": "1"}
    generator = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", **model}
    server = variant(**PARTS, generator=generator)
    found = [one.model_copy(update={"decision": "accepted"}) for one in concluded(study).verdicts]
    units = plan_units(Folder(server), found, CampaignRecords(server).pairs)
    reasons = {unit.decision.reason for unit in units if unit.transformation == "paraphrasing"}
    assert reasons == {
        "the verdict covers recorded outputs of 'plumbline-sample', now openai: have the new outputs rated, or restore"
        " the generator's kind"
    }
    assert {one.origin.generator_kind for one in found} == {"recorded"}


def test_a_record_whose_line_was_taken_from_the_manifest_is_refused(study: Study) -> None:
    names = ("control_ratings.parquet", "pairs.parquet", "controls.parquet", "decisions.json", OUTPUTS)
    whole = json.loads((study.folder / "manifest.json").read_text(encoding="utf-8"))
    for name in (*names, "ratings.parquet"):
        if name == "ratings.parquet":
            write_table(study.folder / name, CampaignRecords(study).ratings.assign(value=5), Rating)
        kept = {file: entry for file, entry in whole["kept"].items() if file != name}
        edit(study.folder / "manifest.json", lambda _, kept=kept: whole | {"kept": kept})  # type: ignore[misc]
        line = said_by(partial(generate if name == OUTPUTS else accept, study))
        assert f"manifest.json has no entry for {name} (is it from another copy?); restore it from a copy" in line


def drift(number: float) -> DriftRecord:
    return DriftRecord(pair_id="a", model="m", drift=number, unit_id="u")


def test_a_table_that_was_edited_is_refused_and_named(generated: Study) -> None:
    Manifest.of(generated).write_table("drift.parquet", [drift(0.5)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    write_table(generated.folder / "drift.parquet", [drift(0.1)], DriftRecord)
    with pytest.raises(DataError, match=r"drift\.parquet differs from what was written .* run `x` again"):
        Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    (generated.folder / "drift.parquet").unlink()
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    Manifest.of(generated).write_table("drift.parquet", [drift(0.2)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")


def test_a_kill_while_a_table_is_written_accuses_nobody(generated: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    Manifest.of(generated).write_table("drift.parquet", [drift(0.5)], DriftRecord)

    replace = Path.replace

    def stop(file: Path, target: Path) -> Path:
        if target.suffix == ".parquet":
            raise KeyboardInterrupt
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        Manifest.of(generated).write_table("drift.parquet", [drift(0.1)], DriftRecord)
    Manifest.of(generated).refuse_replaced("drift.parquet", "x")
    assert not list(generated.folder.glob(".*.tmp"))
