"""Small studies, written to a folder, and the command line as a person runs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from generation.production import generate
from plumbline.records import Text, nfc, text_id
from plumbline.study import ROOT, Study, load_study
from plumbline.study.engines import HttpSettings
from tests import forks

LETTERS = ("apple", "bread", "cloud", "dream", "earth", "flame", "grape", "house", "ivory", "joker")


def study_data(**changes: Any) -> dict[str, Any]:
    """A study of one table of texts, as YAML holds it."""
    return {
        "name": "small",
        "datasets": [{"name": "words", "task": "clustering", "path": "words.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "seeds": [1],
        "generator": {"kind": "recorded", "model": "m", "path": "outputs.jsonl"},
        "evaluation": {"models": [{"name": "none"}]},
        **changes,
    }


def write_study(folder: Path, texts: tuple[str, ...] = LETTERS, **changes: Any) -> Path:
    """Write `study.yaml` and `words.csv`; returns the study's path. Its records go to `folder/exports`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.csv").write_text("text,label\n" + "".join(f"{text},a\n" for text in texts), encoding="utf-8")
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study_data(**changes), allow_unicode=True), encoding="utf-8")
    return path


def small_study(folder: Path, texts: tuple[str, ...] = LETTERS, **changes: Any) -> Study:
    return load_study(write_study(folder, texts, **changes), folder / "exports")


def server(url: str, **changes: Any) -> dict[str, Any]:
    """The generator `openai` at an address."""
    settings = {name: changes.pop(name) for name in HttpSettings.model_fields if name in changes}
    return {"kind": "openai", "model": "m", "base_url": url, "settings": settings, **changes}


def text(value: str, dataset: str = "words", language: str = "en") -> Text:
    value = nfc(value)
    return Text(
        dataset=dataset,
        task_type="clustering",
        split="test",
        item="0",
        field="text",
        language=language,
        text_id=text_id(value, language),
        text=value,
    )


def start(study: Path, exports: Path | None = None, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """`plumbline generate` as a process of its own (forked), with no key and no proxy in its environment."""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment.pop("OPENAI_API_KEY", None)
    command = [sys.executable, "-m", "plumbline", "generate", "--study", str(study)]
    command += ["--exports", str(exports or study.parent / "exports"), *options]
    return forks.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def complaint(stderr: str) -> str:
    """The one line that a failing command leaves, without the progress bar."""
    lines = [line for line in stderr.replace("\r", "\n").split("\n") if line and not line.startswith("generating:")]
    assert len(lines) == 1, stderr
    return lines[0]


def generate_at(study: Path) -> None:
    """A run as a function, without its progress bar."""
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stderr(nothing):
        generate(load_study(study, study.parent / "exports"))
