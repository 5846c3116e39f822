"""A human study with its simulated raters' answers, made without a server: as they would stand after `accept`."""

from __future__ import annotations

from pathlib import Path

from annotation.human.forms import RaterAnswers, form_of
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.simulated import read_items, rehearsal_of
from annotation.human.tasks import read_tasks
from annotation.judges.annotators import annotate
from annotation.sampling.sample import draw_sample
from evaluation.human.run import evaluate_human
from plumbline.manifest import Manifest
from plumbline.study import ROOT, Study, load_study


def write_rehearsed(study: Study) -> None:
    """Answers of the study's simulated raters to all items."""
    rehearsal, rows = rehearsal_of(study), list[HumanAnswer]()
    tasks = {one.task: one for one in read_tasks(study)}
    for item in read_items(study):
        for rater in study.raters.simulated:
            given = {record: RaterAnswers(rehearsal.answers(rater, record), 20.0) for record in item.records}
            rows += form_of(tasks[item.task]).answers(item, given, f"simulated-{rater.name}", simulated=True)
    Manifest.of(study).write_table(ANSWERS, rows, HumanAnswer)


def human_study(folder: Path) -> Study:
    """The sample study with its local models that are no networks."""
    text = (ROOT / "studies" / "human.yaml").read_text()
    text = text.replace("demo/", f"{ROOT}/studies/demo/")
    network = text.index("    - name: sentence-transformers")
    text = text[:network] + text[text.index("    - name: character-n-grams") :]
    (folder / "human.yaml").write_text(text)
    return load_study(folder / "human.yaml", folder / "exports")


def make_human(folder: Path) -> None:
    """The study evaluated, in `exports` below the folder."""
    study = human_study(folder)
    draw_sample(study)
    write_rehearsed(study)
    annotate(study)
    evaluate_human(study)
