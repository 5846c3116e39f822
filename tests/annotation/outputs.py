"""Studies of outputs that somebody has, in a file beside the study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from plumbline.study import Study, load_study


def of_outputs(
    folder: Path, table: pd.DataFrame, queues: Mapping[str, str] = MappingProxyType({}), **changes: Any
) -> Study:
    """A study of the systems of a table with the texts in `text`, perhaps their `language`, and a column for each."""
    table.to_csv(folder / "texts.csv", index=False)
    raters = {"asked": {"en": "Is it the same?"}, "expected": {"negative": {"quality": 1}}}
    systems = [
        {"name": name, "axis": "own", "raters": raters, **({"queue": queues[name]} if name in queues else {}),
         "outputs": {"path": "texts.csv", "text": "text", "output": name}}
        for name in table.columns if name not in ("text", "language")
    ]  # fmt: skip
    data = {"name": "texts", "task": "bitext_mining", "path": "texts.csv", "language": "en", "split": "all",
            "columns": {"sentence1": "text", "sentence2": "text"}}  # fmt: skip
    content = {"name": "outputs", "datasets": [data], "transformations": systems, "seeds": [1], **changes}
    (folder / "study.yaml").write_text(json.dumps(content), encoding="utf-8")
    return load_study(folder / "study.yaml", folder / "exports")
