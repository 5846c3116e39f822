"""Study files: copy samples to the current folder, and write the JSON Schema for editors."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

from plumbline.cli import Local, StudyOptions
from plumbline.errors import PlumblineError, StudyError
from plumbline.interrupt import PACKAGES
from plumbline.resources import resource, working
from plumbline.store import atomic
from plumbline.study import JUDGED, Study, read_study
from plumbline.words import count


def schema() -> str:
    """The JSON Schema of study files."""
    study_schema = Study.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **study_schema}, indent=1) + "\n"


def write_schema(*, out: Local | None = None) -> None:
    """Write the JSON Schema of study files, for editors.

    With it, editors with a YAML language server complete and explain keys in a file whose first line is
    `# yaml-language-server: $schema=study.schema.json`.

    Example: plumbline schema --out studies/study.schema.json

    Args:
        out: The file to write (default: the terminal).
    """
    if out is None:
        print(schema(), end="")
        return
    with atomic(out, public=True) as file:
        file.write(schema().encode())
    print(f"-> {out}")


FOLDER = Path("studies")


def checked(options: StudyOptions) -> Study:
    """Return the study, for a command before people rate.

    Raises StudyError with all faults of its file and of its rubric; with any of these, also with those of its data,
    which are read only then.

    >>> from plumbline.cli import StudyOptions
    >>> checked(StudyOptions("studies/demo.yaml")).name
    'demo'
    """
    reading = read_study(options.study, options.exports)
    study, faults = reading.study, reading.faults

    def check(module: str, name: str) -> None:
        try:
            getattr(importlib.import_module(module), name)(study)
        except PlumblineError as error:
            faults.extend(
                str(fault).replace(f"{study and study.file}:", f"{options.study}:", 1) for fault in error.args
            )
        except ModuleNotFoundError as error:  # a host for generation alone does not have the packages of a campaign
            if (error.name or "").partition(".")[0] in PACKAGES:
                raise

    asks = reading.knows("rubric", "wordings", "acceptance", "raters.blocks", *JUDGED)
    if study and reading.knows("rubric", "subject") and not study.judging.does_tasks:  # their tasks have the questions
        check("annotation.campaign.rubric", "load_rubric" if asks else "refuse_missing")
    if study and faults:
        check("generation.recordings", "refuse_unreadable")
    if faults or study is None:
        raise StudyError(*dict.fromkeys(faults))
    return study


def copy_studies() -> StudyOptions:
    """Copy the sample studies into ./studies, to run or adapt.

    Existing files stay unchanged.

    Example: plumbline studies
    """
    new = put_samples()
    print(f"{count(new, 'file')} copied to {FOLDER}/" if new else f"the sample studies are in {FOLDER}/ already")
    print(f"prompts and rubrics to adapt: {resource('prompts')}; put yours, with other names, in {working('prompts')}")
    return StudyOptions("studies/demo.yaml")


def put_samples() -> int:
    """Copy missing sample studies to `./studies`; return the number of new files."""
    source, new = resource("studies"), 0
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        target = FOLDER / file.relative_to(source)
        if not target.exists():
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError:
                raise StudyError("the current folder was deleted; change to another one, then run again") from None
            part = target.with_name(f".{target.name}.new")
            shutil.copyfile(file, part)
            part.replace(target)
            new += 1
    return new
