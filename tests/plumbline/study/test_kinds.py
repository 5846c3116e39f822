"""The guide's example of a kind of engine and of model, through a study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation.models.encoder import ModelHost
from generation.production import generate, read_transformed
from plumbline.errors import StudyError
from plumbline.study import ROOT
from plumbline.study.engines import EngineSpec
from plumbline.study.evaluation import ModelSpec
from tests.evaluation.conftest import write_study


def test_a_kind_is_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "guides" / "maintainer.md").read_text(encoding="utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class Capitals" in block]
    assert len(example.splitlines()) <= 60
    (tmp_path / "kinds.py").write_text(example, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for family in (EngineSpec, ModelSpec):
        monkeypatch.setattr(family, "KINDS", dict(family.KINDS))
    __import__("kinds")
    own = {"models": [{"name": "mine", "kind": "letters"}]}
    generator = {"kind": "capitals", "model": "any", "mark": "!"}
    study = write_study(tmp_path, generator=generator, evaluation=own, transformations=["paraphrasing"])
    assert generate(study)["ok"]
    for row in read_transformed(study, "paraphrasing", 1337):
        assert row.output == f"{row.text.upper()}!"
    encoder = ModelHost.of(study).load(study.evaluation.models[0])
    assert encoder.embed(["a cat", "I see"]).tolist() == [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]]
    with pytest.raises(StudyError, match="mark: does not apply to an engine of kind none; take it out"):
        write_study(tmp_path, generator={"kind": "none", "mark": "!"})
