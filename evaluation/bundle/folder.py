"""`bundle export --format parquet`: a folder that the `datasets` library and the hub take as it is; nothing is sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from evaluation.bundle import configurations
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.card import card, croissant
from evaluation.bundle.check import open_checked
from evaluation.bundle.export import export
from plumbline.errors import StudyError
from plumbline.file_hashes import sha256_of
from plumbline.store import clear_left, json_bytes, make_folder
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
    make_folder(out.parent)
    clear_left(out)
    made = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    archive = f"{study.name}.plumb"
    made.mkdir(exist_ok=True)  # for others to read, as all that is in it
    try:
        export(study, made / archive, comments=comments, check=open_checked)
        bundle = open_checked(made / archive)
        written = configurations.write(bundle, made, step)
        (made / CARD).write_text(card(bundle, written, archive), encoding="utf-8")
        there = [archive, *(file for one in written for file in one.splits.values())]
        files = {name: (sha256_of(made / name), (made / name).stat().st_size) for name in there}
        said, lacking = croissant(bundle, written, files)
        (made / CROISSANT).write_bytes(json_bytes(said))
        bundle.archive.close()
        made.replace(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return Bundle.open(out / archive), lacking
