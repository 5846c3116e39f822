"""`bundle export --format parquet`: a folder that the `datasets` library and the hub take as it is; nothing is sent."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from evaluation.bundle import configurations
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.card import card
from evaluation.bundle.check import open_checked
from evaluation.bundle.croissant import croissant
from evaluation.bundle.export import export
from plumbline.errors import StudyError
from plumbline.store import write_json
from plumbline.study import Study

CARD, CROISSANT = "README.md", "croissant.json"


def export_folder(
    study: Study, out: Path, *, comments: bool = False, step: Callable[[], object] = lambda: None
) -> tuple[Bundle, list[str]]:
    """Write a study's bundle and its tables as a folder, which appears whole; (the bundle, what Croissant lacks).

    Raises StudyError where something is there already, and as `export` does.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise StudyError(f"--out {out}: there is something already; name a folder that is not there, or is empty")
    out.parent.mkdir(parents=True, exist_ok=True)
    _clear(out)
    made = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    archive = f"{study.name}.plumb"
    try:
        export(study, made / archive, comments=comments, check=open_checked)
        bundle = open_checked(made / archive)
        written = configurations.write(bundle, made, step)
        (made / CARD).write_text(card(bundle, written, archive), encoding="utf-8")
        there = [archive, *(file for one in written for file in one.splits.values())]
        files = {name: (_sha256(made / name), (made / name).stat().st_size) for name in there}
        said, lacking = croissant(bundle, written, files)
        write_json(made / CROISSANT, said)
        bundle.archive.close()
        made.replace(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return Bundle.open(out / archive), lacking


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _clear(out: Path) -> None:
    """Remove what killed processes left of this folder."""
    for left in out.parent.glob(f".{glob.escape(out.name)}.*.tmp"):
        writer = left.name.rsplit(".", 2)[1]
        if writer.isdecimal() and not Path("/proc", writer).exists():
            shutil.rmtree(left, ignore_errors=True)
