from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from generation.datasets.loading import iter_datasets
from generation.generators import RecordedOutputs
from generation.jobs import Plan
from generation.production import generate, read_transformed
from plumbline.study import ROOT, load_study
from tests.generation.helpers import small_study

DEMO = ROOT / "studies" / "demo.yaml"


def line(**changes: Any) -> str:
    row = {
        "text": "apple",
        "transformation": "paraphrasing",
        "language": None,
        "intermediate": None,
        "output": "a pome",
    }
    return json.dumps({**row, **changes}, ensure_ascii=False) + "\n"


def test_a_missing_recording_leaves_its_text_alone_and_is_served_once_it_is_there(tmp_path: Path) -> None:
    study = small_study(tmp_path, texts=("apple", "bread"))
    (tmp_path / "outputs.jsonl").write_text(line())
    assert generate(study) == {"ok": 1, "unanswered": 1}
    good, bad = read_transformed(study, "paraphrasing", 1)
    assert (good.text, good.output, good.status, good.reason) == ("apple", "a pome", "ok", "")
    assert (bad.text, bad.output, bad.status, bad.attempts) == ("bread", "", "unanswered", 0)
    assert bad.reason == "no recording for paraphrasing"
    (tmp_path / "outputs.jsonl").write_text(line() + line(text="bread", output="a loaf"))
    assert generate(study) == {"ok": 1, "reused": 1}
    assert [row.output for row in read_transformed(study, "paraphrasing", 1)] == ["a pome", "a loaf"]


def test_the_sample_study_is_complete_and_every_output_is_rated() -> None:
    study = load_study(DEMO)
    plan, recorded = Plan(study), RecordedOutputs.of(study)
    texts = [text for data in iter_datasets(study) for text in data.texts()]
    for name in study.transformations:
        for job in plan.jobs(texts, name, study.seeds[0]):
            found = recorded.find(name, job.language, job.text)
            assert found is not None, (name, job.language, job.text)
            assert found.quality is not None
            assert found.fluency is not None
            assert (found.intermediate is not None) == (len(plan.prompts[name]) == 2)


def test_one_transformation_of_the_sample_is_bad_on_purpose() -> None:
    recorded = RecordedOutputs.of(load_study(DEMO)).recordings.values()
    means = {
        name: mean(r.quality for r in recorded if r.transformation == name and r.quality is not None)
        for name in load_study(DEMO).transformations
    }
    assert [name for name, value in means.items() if value < 3] == ["summarised_expansion"]
    assert all(value > 3.5 for name, value in means.items() if name != "summarised_expansion")
