"""Studies of other subjects than pairs: files and rubrics of a test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from plumbline.prompts import PROMPTS
from plumbline.study import Study, load_study

RATERS = {"per_pair": 2, "simulated": [{"name": "even", "noise": 0.1}, {"name": "kind", "bias": 0.1, "noise": 0.1}]}
CHAT = [{"role": "user", "content": "Wo ist مرحبا?"}, {"role": "assistant", "content": "<b>Hier</b>"}]
WORDS = "amber birch cedar delta ember flint grove heath islet jetty knoll larch marsh notch ocean pines quarry ridge"


def rows(**changes: Any) -> list[dict[str, Any]]:
    """Eighteen texts of two groups, of which four are German, each with a chat beside it, and four known ones."""
    found = []
    for number, word in enumerate(WORDS.split()):
        language = "de" if number % 4 == 3 else "en"
        group = "human" if number % 2 else "machine"
        found.append({"text": f"Find the {word}, number {number}", "talk": CHAT, "group": group, "language": language})
    right = ("acceptable", "irrelevant", "unnatural", "acceptable")
    known = [
        {"text": f"Known {word}", "talk": CHAT, "group": "human", "language": "en", "right": label}
        for word, label in zip(WORDS.split(), right, strict=False)
    ]
    return [{**one, **changes} for one in [*found, *known]]


def rubric(**changes: Any) -> dict[str, Any]:
    """The rubric of the sample study of prompts, with a chat for the context."""
    content: dict[str, Any] = yaml.safe_load((PROMPTS / "rubrics" / "instructions.yaml").read_text(encoding="utf-8"))
    fields = [content["fields"][0], {"name": "talk", "kind": "chat", "title": {"en": "Talk", "de": "Gespräch"}}]
    return content | {"name": "kinds", "fields": fields} | changes


def texts(folder: Path, name: str, own: list[dict[str, Any]] | None = None, **changes: Any) -> Study:
    """A study of the texts in a file of `rows`; `changes` are the study's, those of `subject` are added to its own."""
    lines = [json.dumps(row, ensure_ascii=False) for row in (rows() if own is None else own)]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subject = {
        "kind": "texts", "path": f"{name}.jsonl", "language": "en",
        "groups": ["human", "machine"], "context": {"talk": "talk"}, "expected": {"label": "right"},
    }  # fmt: skip
    rule = {"question": "label", "label": "acceptable", "at_least": 0.6}
    study = {
        "name": name,
        "subject": subject | changes.pop("subject", {}),
        "sample": {"pairs": 9, "batch": 9},
        "rubric": "kinds",
        "raters": RATERS,
        "acceptance": {"min_pairs": min(3, changes.get("sample", {}).get("pairs", 9) // 2), "rules": [rule]},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(study | changes), encoding="utf-8")
    return load_study(file, folder / "exports")
