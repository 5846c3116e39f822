"""`plumbline studies`: the sample studies, put where one stands."""

from __future__ import annotations

import shutil
from pathlib import Path

from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.resources import resource, working

FOLDER = Path("studies")


def main() -> int:
    """Copy them, and say where prompts and rubrics are."""
    cli.Parser(
        prog="plumbline studies",
        description="Put the sample studies into ./studies, to run and to copy from. Files that are there stay.",
        epilog="example: plumbline studies",
    ).parse_args()
    new = put_samples()
    print(f"{new} files put into {FOLDER}/" if new else f"the sample studies are in {FOLDER}/ already")
    print(f"prompts and rubrics to copy from: {resource('prompts')}; yours, under other names: {working('prompts')}")
    print(as_called("next: python -m generation.run --study studies/demo.yaml"))
    return 0


def put_samples() -> int:
    """Copy the sample studies to `./studies` where they are missing; returns how many files are new."""
    source, new = resource("studies"), 0
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        target = FOLDER / file.relative_to(source)
        if not target.exists():
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError:
                raise StudyError("no folder can be made where you stand; change to another, then run again") from None
            part = target.with_name(f".{target.name}.new")
            shutil.copyfile(file, part)
            part.replace(target)
            new += 1
    return new
