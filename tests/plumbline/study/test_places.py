"""Local paths, addresses and names: what cannot be is one line, before anything is read or loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.study.evaluation import SentenceTransformersSpec


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "BAAI/bge-m3", "org_x/model_1.5-b", "intfloat/e5-base"])
def test_names_of_models_pass(tmp_path: Path, name: str) -> None:
    assert SentenceTransformersSpec(name=name).location(tmp_path) == name
