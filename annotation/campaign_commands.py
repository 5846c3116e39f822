"""The command `review`: signs of careless answers, decisions about raters, and pairs to adjudicate."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from annotation.adjudication import DisputedPairs, judged_text, publish_review, read_adjudications
from annotation.anchoring import suggestions_to_show
from annotation.argilla import accounts
from annotation.argilla.client import connect
from annotation.argilla.publish import Publication, publish, rubric_to_ask
from annotation.argilla.training import publish_training, training_lines
from annotation.argilla_files import FOLDER as IN_ARGILLAS
from annotation.argilla_files import export_argilla
from annotation.comparison import comparison_text
from annotation.export import FOLDER, export
from annotation.human.tasks import reworded_lines
from annotation.names import known_names, named, pseudonym_of
from annotation.offering import alone
from annotation.ratings.exclusions import decide, withdraw
from annotation.ratings.review import review_text, waiting_text
from annotation.records import Verdict
from annotation.sampling.candidates import flagged_supply
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import read_pairs, read_shown, read_supply
from annotation.server_commands import home_of
from annotation.training import read_items
from annotation.user_commands import unread_lines
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.reachable import ahead_of_sample, never_lines, size_line
from annotation.verdicts.tables import count
from annotation.verdicts.verdicts import read_verdicts
from annotation.wordings import addressed_lines
from generation.flag_counts import flagged_lines
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.reading import read_text
from plumbline.records import Pair
from plumbline.study import Study, load_study


def say_unread(study: Study, reads: Mapping[str, Sequence[str]]) -> None:
    """Say which queues nobody can answer, as far as annotators' languages are known."""
    queues = {queue: len(pairs) for queue, pairs in queues_of(read_shown(study)).items()}
    for line in unread_lines(study, queues, reads):
        print(f"  {line}")


def say_flagged(study: Study) -> None:
    """Say how many of the outputs that raters are to see have error types."""
    for line in flagged_lines(flagged_supply(read_supply(study))):
        print(f"  {line}")


def say_verdicts(study: Study, pairs: Sequence[Pair], *, published: bool = False) -> None:
    """Say how many verdicts a sample is for and on what each can rest, and which of them no answers can decide.

    `published` is whether raters may have seen it.
    """
    groups = ahead_of_sample(study, pairs)
    for line in [size_line(study, groups), *never_lines(study, groups, offered=published)]:
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
    settings: dict[str, int] = {}
    with stage(study, "publish", shown_files(study), settings=settings), connect(home) as argilla:
        reads = accounts.languages_at(argilla, home)
        done = publish(study, argilla, reads, suggestions)
        training = publish_training(study, argilla, rubric)
        settings["annotators"] = done.admission.people
    new, datasets, workspaces = sum(done.new.values()), len(done.new), ", ".join(done.admission.readers)
    sent = count(new, f"new {study.called.item}")
    print(f"{study.name}: {sent} published in {count(datasets, 'dataset')}; workspaces: {workspaces}")
    if suggestions:
        item = study.called.item
        print(f"  an experiment: {len(suggestions)} {item}s show judges' scores as suggestions and count in no verdict,"
              " since raters are drawn towards what they see (raters.suggestions)")  # fmt: skip
    for line in [*done.corrections(), *done.withdrawals(), *done.replacements(), *training_lines(training)]:
        print(f"  {line}")
    if done.admission.out:
        print(f"  taken out, for raters.people does not name them: {', '.join(done.admission.out)};"
              " their answers stay on the server")  # fmt: skip
    if not study.raters.simulated:
        warn_of_readers(study, done)
        say_unread(study, reads)
    texts = {(pair.language, pair.output_language) for pair in read_shown(study)}
    for line in [*addressed_lines(study, asked_rubric(study), texts), *reworded_lines(study)]:
        print(f"  {line}")
    say_verdicts(study, pairs, published=True)
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


def review(options: argparse.Namespace) -> int:
    """Show what a person looks at before deciding about a rater, or note the decision."""
    if options.reason is not None and not (options.exclude or options.keep):
        raise StudyError("--reason goes with --exclude or --keep: name the rater that it is about")
    if bool(options.adjudicate) != bool(options.by):
        raise StudyError("--adjudicate and --by go together: how many pairs, and the names of those who read them")
    study = cli.study_of(options)
    if options.judged or options.adjudicate:
        return _judged(study, options)
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    names = known_names(home_of(options), study)
    raters = [pseudonym_of(name, names) for name in options.exclude or options.keep or ()]
    if not raters:
        decided = [*evidence.decisions, *evidence.withdrawals]
        text = review_text(study, evidence.collected, decided, evidence.signs, evidence.unlooked, names)
        print(f"{waiting_text(_waiting(study), names)}{text}")
        return 0
    with alone(study):
        decision = decide(
            study,
            *raters,
            exclude=bool(options.exclude),
            reason=options.reason or "",
            signs=evidence.signs,
            names=names,
        )
    done = "excluded" if decision.exclude else "kept"
    print(
        f"{study.name}: {', '.join(named(rater, names) for rater in raters)} {'is' if len(raters) == 1 else 'are'}"
        f" {done}: {decision.reason}; run `{study.command('annotation accept')}` again"
    )
    if study.raters.replace_excluded and decision.exclude:
        print(f"  {study.called.item}s of excluded raters are offered to others again by"
              f" `{study.command('annotation publish')}`, and a crowd's by `{study.command('annotation crowd launch')}`"
              " from what is left of the money (raters.replace_excluded: false leaves them)")  # fmt: skip
    return 0


def _waiting(study: Study) -> list[Verdict]:
    """The verdicts reached last that wait for a look at their raters."""
    reached = read_verdicts(study) if (study.folder / "verdicts.json").exists() else []
    return [verdict for verdict in reached if verdict.to_look_at]


def _judged(study: Study, options: argparse.Namespace) -> int:
    """Show where people and judges differ most, or put these pairs before adjudicators."""
    if not options.adjudicate:
        names = known_names(home_of(options), study)
        print(as_called(judged_text(study, DisputedPairs.read(study), read_adjudications(study), names)))
        return 0
    people = [name for name in map(str.strip, options.by.split(",")) if name]
    with connect(home_of(options), existing=True) as argilla:
        done = publish_review(study, argilla, options.adjudicate, people)
        reads = accounts.languages_at(argilla, home_of(options))
    new, whom = sum(done.new.values()), ", ".join(people)
    print(f"{study.name}: {new} new of {len(done.pairs)} pairs for {whom} to adjudicate in {', '.join(done.new)}")
    print("  they see judges' scores as suggestions, and what people said without names; what they answer is no rating")
    for name, number in done.rated.items():
        print(f"  {name} has rated {number} of these pairs too; their adjudications are marked so")
    for name in people:
        if strange := sorted(done.languages - set(reads.get(name, done.languages))):
            print(f"  {name} does not read {', '.join(strange)}, in which some of these texts are")
    shown = f"{study.command('annotation review')} --judged"
    print(f"  when they are done: `{study.command('annotation collect')}`, then `{shown}`")
    return 0


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """What `review` takes."""
    deciding = parser.add_mutually_exclusive_group()
    deciding.add_argument(
        "--exclude",
        metavar="RATER",
        nargs="+",
        help="exclude raters (pseudonyms or names): the answers stay in the data and no longer count",
    )
    deciding.add_argument(
        "--keep",
        metavar="RATER",
        nargs="+",
        help="keep raters: the answers count, whatever was decided before, and no verdict waits for a look at these"
        " raters until their answers are others, or more",
    )
    parser.add_argument("--reason", metavar="TEXT", help="your reason; it is kept with the decision")
    deciding.add_argument(
        "--judged", action="store_true", help="show the pairs on which people and judges differ most, after `accept`"
    )
    deciding.add_argument(
        "--adjudicate",
        type=cli.count,
        metavar="N",
        help="put so many of these before adjudicators in Argilla, with judges' scores as suggestions; no rating",
    )
    parser.add_argument("--by", metavar="NAMES", default="", help="user names of the adjudicators, such as eva,tom")


Add = Callable[..., argparse.ArgumentParser]


def add_outcome_commands(add: Add) -> None:
    """Add them to the command line; `add` takes a name, what runs it, and its help."""
    _add_withdrawing(add("withdraw", _withdraw, "withdraw pairs from the sample, or take them back", argilla=False))
    comparing = add("compare", _compare, "hold waves side by side, or two campaigns on the same pairs", argilla=False)
    comparing.add_argument("--other", metavar="FILE", help="another study that rated the same pairs")
    comparing.add_argument("--other-exports", metavar="DIR", help="where that study's records are, if elsewhere")
    exporting = add(
        "export",
        _export,
        f"write the ratings as CSV (or in Argilla's own files) with a codebook, to {FOLDER}/",
        argilla=False,
    )
    exporting.add_argument("--licence", metavar="TEXT", default="", help="the codebook's line on the licence")
    exporting.add_argument(
        "--words", action="store_true", help="also write what raters wrote in their own words, which may hold names"
    )
    exporting.add_argument(
        "--argilla",
        action="store_true",
        help=f"write Argilla's own files instead, to {IN_ARGILLAS}/: a folder a queue, for rg.Dataset.from_disk",
    )


def _add_withdrawing(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--pair", metavar="ID", nargs="+", help="ids of pairs, or at least their first 8 characters, as `review` prints"
    )
    which.add_argument("--pairs-from", metavar="FILE", type=cli.local, help="a file with an id on each line")
    parser.add_argument("--take-back", action="store_true", help="let pairs that were withdrawn count again")
    parser.add_argument("--reason", metavar="TEXT", default="", help="your reason; it is kept, and every report has it")


def _withdraw(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    named = options.pair
    if options.pairs_from is not None:
        try:
            named = read_text(options.pairs_from).split()
        except FileNotFoundError:
            raise StudyError(f"{options.pairs_from} is not there; write a file with an id on each line") from None
        if not named:
            raise StudyError(f"{options.pairs_from} names no pair; write an id on each line")
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    with alone(study):
        decisions = withdraw(study, named, take_back=options.take_back, reason=options.reason)
    ratings = evidence.collected.ratings
    ids = {decision.pair_id for decision in decisions}
    answers = ratings[ratings["pair_id"].isin(ids) & (ratings["status"] == "submitted")].drop_duplicates(
        ["pair_id", "rater_id"]
    )
    pairs, of_them = count(len(decisions), "pair"), count(len(answers), "answer")
    done = "taken back" if options.take_back else "withdrawn"
    again = "counting again" if options.take_back else "kept, and not counted"
    print(f"{study.name}: {pairs} {done} ({decisions[0].reason}); {of_them} {again}")
    if (study.folder / "offered.json").exists():
        print(
            f"  in Argilla: run `{study.command('annotation publish')}`, which leaves what has answers or drafts there"
        )
    if (study.folder / "verdicts.json").exists():
        print(f"  run `{study.command('annotation accept')}` again")
    return 0


def _compare(options: argparse.Namespace) -> int:
    second = load_study(options.other, options.other_exports or options.exports) if options.other else None
    print(comparison_text(cli.study_of(options), second))
    return 0


def _export(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    write = export_argilla if options.argilla else export
    folder = write(study, licence=options.licence, words=options.words)
    print(f"{study.name}: ratings -> {folder}; codebook.md says what is in it")
    return 0
