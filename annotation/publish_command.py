"""The command `publish`, and what it says about those who can answer."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from annotation.addressed import addressed_lines
from annotation.anchoring.noted import suggestions_to_show
from annotation.argilla import accounts
from annotation.argilla.client import connect
from annotation.argilla.publish import Publication, publish, rubric_to_ask
from annotation.argilla.training import publish_training, training_lines
from annotation.human.reworded import reworded_lines
from annotation.readers import unread_lines
from annotation.sampling.candidates import flagged_supply
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import read_pairs, read_supply
from annotation.sampling.shown import shown
from annotation.server_commands import home_of
from annotation.training import read_items
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.reachable import ahead_of_sample, never_lines, size_line
from annotation.verdicts.tables import count
from generation.flagged import flagged_lines
from plumbline import cli
from plumbline.commands import as_called
from plumbline.manifest import stage
from plumbline.records import Pair
from plumbline.study import Study


def say_unread(study: Study, reads: Mapping[str, Sequence[str]]) -> None:
    """Say which queues nobody can answer, as far as annotators' languages are known."""
    queues = {queue: len(pairs) for queue, pairs in queues_of(shown(study)).items()}
    for line in unread_lines(study, queues, reads):
        print(f"  {line}")


def say_flagged(study: Study) -> None:
    """Say how many of the outputs that raters are to see have error types."""
    for line in flagged_lines(flagged_supply(read_supply(study))):
        print(f"  {line}")


def say_verdicts(study: Study, pairs: Sequence[Pair], *, asked: bool = False) -> None:
    """Say how many verdicts a sample is for and on what each can rest, and which of them no answers can decide.

    `asked` is whether raters may have seen it.
    """
    groups = ahead_of_sample(study, pairs)
    for line in [size_line(study, groups), *never_lines(study, groups, asked=asked)]:
        print(f"  {line}")


def shown_files(study: Study) -> list[Path]:
    """The files of all that raters see."""
    return [study.folder / "pairs.parquet", study.folder / "controls.parquet"]


def publish_pairs(options: argparse.Namespace) -> int:
    """Put the sample, and known pairs to learn on, before the annotators; say what they should know of it."""
    study, home = cli.study_of(options), home_of(options)
    pairs = read_pairs(study)  # no server is started to say that there are none
    read_items(study, rubric := rubric_to_ask(study)[0])
    suggestions = suggestions_to_show(study)
    asked: dict[str, int] = {}
    with stage(study, "publish", shown_files(study), settings=asked), connect(home) as argilla:
        reads = accounts.languages_at(argilla, home)
        done = publish(study, argilla, reads, suggestions)
        known = publish_training(study, argilla, rubric)
        asked["annotators"] = done.admission.people
    new, datasets, workspaces = sum(done.new.values()), len(done.new), ", ".join(done.admission.readers)
    sent = count(new, f"new {study.called.item}")
    print(f"{study.name}: {sent} published in {count(datasets, 'dataset')}; workspaces: {workspaces}")
    if suggestions:
        item = study.called.item
        print(f"  an experiment: {len(suggestions)} {item}s show judges' scores as suggestions and count in no verdict,"
              " since raters are drawn towards what they see (raters.suggestions)")  # fmt: skip
    for line in [*done.corrections(), *done.withdrawals(), *done.replacements(), *training_lines(known)]:
        print(f"  {line}")
    if done.admission.out:
        print(f"  taken out, for raters.people does not name them: {', '.join(done.admission.out)};"
              " their answers stay on the server")  # fmt: skip
    if not study.raters.simulated:
        warn_of_readers(study, done)
        say_unread(study, reads)
    texts = {(one.language, one.output_language) for one in shown(study)}
    for line in [*addressed_lines(study, asked_rubric(study), texts), *reworded_lines(study)]:
        print(f"  {line}")
    say_verdicts(study, pairs, asked=True)
    if (study.folder / "sample.json").exists():
        say_flagged(study)
    return 0


def warn_of_readers(study: Study, done: Publication) -> None:
    """Say where there are too few annotators, and of how many nobody knows what they read, where that matters.

    It does not where the study names its people, and all that they see is in one workspace.
    """
    for workspace, readers in done.admission.readers.items():
        if readers < study.raters.per_pair:
            print(
                f"  {workspace}: {count(readers, 'annotator')} for these languages,"
                f" {study.raters.per_pair} wanted a pair"
            )
    if done.admission.unknown and (study.raters.people is None or len(done.admission.readers) > 1):
        print(f"  let in everywhere: {count(done.admission.unknown, 'annotator')} whose languages are not known"
              f" ({as_called('python -m annotation users')} add NAME --languages en,de)")  # fmt: skip
