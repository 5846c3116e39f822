"""`python -m annotation COMMAND`: pairs out to people, ratings back, verdicts."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from annotation.adjudication import FILE as ADJUDICATIONS
from annotation.adjudication import collect_adjudications
from annotation.anchoring import ABOUT, anchoring_lines, read_anchoring
from annotation.argilla import accounts
from annotation.argilla.accounts import names_at
from annotation.argilla.client import connect
from annotation.argilla.collect import collect
from annotation.argilla.simulate import simulate
from annotation.argilla_files import collect_files
from annotation.campaign_commands import (
    add_outcome_commands,
    add_review_options,
    publish_pairs,
    review,
    say_flagged,
    say_unread,
    say_verdicts,
    shown_files,
)
from annotation.crowd.commands import add_crowd_commands
from annotation.csv_answers import collect_csv, columns_of
from annotation.human.records import ANSWERS
from annotation.human.tasks import task_lines
from annotation.judges.check import beside_text
from annotation.judges.commands import add_judge_commands
from annotation.judges.decisions import FILE as WITH_JUDGES
from annotation.judges.decisions import different, judged_means, read_beside, write_beside
from annotation.judges.savings import savings_text
from annotation.names import known_names, remember_names
from annotation.offering import alone
from annotation.planning_command import add_plan_options, plan_text, sizes_asked
from annotation.preview import SHOWN, write_preview
from annotation.records import Adjudication
from annotation.sampling.controls import read_controls
from annotation.sampling.extension import extend_sample
from annotation.sampling.sample import draw_sample, read_pairs, read_supply, sample_settings
from annotation.server_commands import add_commands, add_data_option, add_serve_options, home_of, serve
from annotation.status.status import read_status, status_now
from annotation.status.text import headline, status_text
from annotation.user_commands import add_user_commands, target_lines
from annotation.verdicts.acceptance import accept, answers_lines
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.tables import SIMULATED, agreement_text, count, verdict_text
from plumbline import cli
from plumbline.commands import as_called
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.records import SUGGESTED
from plumbline.resources import installing


def main() -> int:
    """The command line."""
    options = _parser().parse_args()
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _plan(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    print(plan_text(study, options))
    if options.judge_correlation is not None:
        print(f"\n{savings_text(study, options.judge_correlation, sizes_asked(study, options))}")
    for line in target_lines(study, accounts.languages_unasked(home_of(options))):
        print(line)
    return 0


def _sample(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    judging = study.judging
    transformed = [study.folder / "texts.parquet", study.folder / "transformations"]
    transformed = transformed if judging.transforms else study.data_files()
    outputs = [*shown_files(study), study.folder / "sample.json"]
    with stage(study, "sample", transformed, outputs, sample_settings(study)):
        wave = extend_sample(study, options.extend) if options.extend is not None else None
        pairs = draw_sample(study)
    item = study.called.item
    if wave is not None:
        print(
            f"{study.name}: wave {wave.number} adds {wave.pairs} {item}s to the sample; publish it to have them rated"
        )
    controls = read_controls(study)
    kinds = Counter[str](pair.control for pair in controls)
    more = f"{kinds['positive']} positive and {kinds['negative']} negative controls, {count(kinds['repeat'], 'repeat')}"
    if not judging.transforms:
        more = f"{count(kinds['known'], 'known item')}, {count(kinds['repeat'], 'repeat')}"
    if kinds[SUGGESTED]:
        more += f", {kinds[SUGGESTED]} {item}s that will show judges' scores and never count (raters.suggestions)"
    print(f"{study.name}: {len(pairs)} {item}s drawn, and {more} -> {study.folder / 'pairs.parquet'}, controls.parquet")
    for line in task_lines(study) if judging.does_tasks else ():
        print(f"  {line}")
    for name in study.kinds if not judging.does_tasks else ():
        drawn = sum(pair.transformation == name for pair in (*pairs, *controls) if pair.drawn)
        if drawn < study.sample.pairs and not judging.takes_all:
            print(f"  {name}: {drawn} {item}s, the study asks for {study.sample.pairs};"
                  f" there are no more {judging.sources}")  # fmt: skip
    for supply in read_supply(study):
        if supply.failed:
            lost = judging.failed.replace(" that", "")
            print(f"  {supply.transformation}, {supply.language}: {supply.failed_share:.1%} of the {lost}"
                  " and are rated by nobody")  # fmt: skip
        if supply.known:
            too = "is a known item too, and is" if supply.known == 1 else "are known items too, and are"
            print(f"  {supply.transformation}, {supply.language}: {count(supply.known, item)} {too} not in the sample")
    say_verdicts(study, pairs)
    say_flagged(study)
    say_unread(study, accounts.languages_unasked(home_of(options)))
    return 0


def _simulate(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    read_pairs(study)  # no server is started to say that there are none
    with connect(home_of(options), existing=True) as argilla:
        answered = simulate(study, argilla)
    drawn = "" if study.judging.transforms else "; what they think of an item was drawn by the seed"
    if study.judging.does_tasks:
        drawn = "; they know the gold, and err as the study says"
    print(f"{study.name}: {count(answered, 'answer')} given by simulated raters{drawn if answered else ''}")
    return 0


def _preview(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    print(f"{study.name}: what raters will see -> {write_preview(study, options.pairs)}; open it in a browser")
    return 0


def _collect(options: argparse.Namespace) -> int:
    study, home = cli.study_of(options), home_of(options)
    if bool(options.csv) != bool(options.columns):
        raise StudyError("--csv and --columns go together: the file, and which column holds what")
    if options.csv and options.argilla:
        raise StudyError("--csv and --argilla are two kinds of files; collect them one after the other")
    outputs, adjudicated = ("ratings.parquet", "control_ratings.parquet", "members.json"), list[Adjudication]()
    with stage(study, "collect", shown_files(study), [study.folder / name for name in outputs]):
        if options.csv:
            columns = columns_of(study, options.columns)
            ratings = collect_csv(study, home, options.csv, columns, replace=options.replace)
        elif options.argilla:
            ratings = collect_files(study, home, options.argilla, replace=options.replace)
        else:
            read_pairs(study)  # no server is started to say that there are none
            with connect(home, existing=True) as argilla:
                ratings = collect(study, argilla, replace=options.replace)
                remember_names(home, study, names_at(study, argilla))
                adjudicated = collect_adjudications(study, argilla, replace=options.replace)
    answers = ratings.drop_duplicates(["pair_id", "rater_id"])  # a rating for each question or candidate
    counts = answers["status"].value_counts()
    parts = ", ".join(f"{counts.get(status, 0)} {status}" for status in ("submitted", "draft", "discarded"))
    simulated = f", {int(answers['simulated'].sum())} of them simulated" if answers["simulated"].any() else ""
    number = f"{count(len(ratings), 'rating')} in {count(len(answers), 'answer')}"
    print(f"{study.name}: {number} ({parts}{simulated}) -> {study.folder / 'ratings.parquet'}")
    if adjudicated:
        read = len({(adjudication.pair_id, adjudication.adjudicator) for adjudication in adjudicated})
        print(f"  {count(read, 'adjudication')}, which are no ratings -> {study.folder / ADJUDICATIONS}")
    return 0


def _status(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    names = known_names(home_of(options), study)
    print(as_called(status_text(status_now(study, home_of(options)), study.arguments, names)))
    return 0


def _accept(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    inputs = [study.folder / "pairs.parquet", study.folder / "ratings.parquet"]
    outputs = [study.folder / name for name in ("agreement.json", "verdicts.json", "pair_means.parquet", WITH_JUDGES)]
    people = study.judging.does_tasks
    outputs += [study.folder / ANSWERS] if people else []
    answered: list[str] = []
    with alone(study), stage(study, "accept", inputs, outputs):
        done = accept(study, options.amend, judged_means)
        if people:
            answered = answers_lines(study, done)
        judges, why_not = read_beside(done.evidence, done.verdicts)
        write_beside(study, done.verdicts, judges)
    status = read_status(study, datetime.now(UTC), evidence=done.evidence, reached=done.verdicts)
    lines = headline(status, done.verdicts)
    print(as_called("\n".join([*lines, *([SIMULATED] if status.simulated else [])])), end="\n\n")
    table = "Ratings and agreement (HTEB, Table 2)" if study.judging.transforms else "Answers and agreement"
    if not people:  # their agreement is the evaluation's, of whole answers and not of single questions
        print(f"{table}, study {study.name}\n\n{agreement_text(done.groups, study.called)}\n")
    if answered:
        print("\n".join([f"Answers that count, study {study.name}\n", *answered]), end="\n\n")
    rules = [verdict_text(done.verdicts, study.called), *done.amendments]
    print(
        f"Verdicts, study {study.name}\n\n"
        + "\n".join(rules)
        + f"\n\n{doubts_text([*done.doubts, *different(judges)], study, judged=True)}"
    )
    if judges or why_not:
        print(f"\nJudges beside people, study {study.name}\n\n{beside_text(judges) if judges else why_not}")
    if study.raters.suggestions == "half":
        effects = anchoring_lines(read_anchoring(study, done.evidence.collected))
        print("\n".join([f"\nAnchoring, study {study.name}\n", ABOUT, "", *effects]))
    return 0


def _report(options: argparse.Namespace) -> int:
    study = cli.study_of(options)
    names = ("pairs.parquet", "ratings.parquet", "agreement.json", "verdicts.json", "decisions.json", "rules.json")
    with stage(study, "report", [study.folder / name for name in names], [study.folder / "report"]):
        try:
            from annotation.report.page import write_report  # noqa: PLC0415 (extra `report`)

            page = write_report(study)
        except ModuleNotFoundError as error:
            raise StudyError(f"reports need {error.name}: {installing('report')}") from None
    print(f"{study.name}: report -> {page}, and its tables as CSV beside it")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = cli.Parser(
        prog=as_called("python -m annotation"),
        description="Send pairs to people, collect their ratings, reach verdicts. Every command may be run again.",
        epilog=as_called("example: python -m annotation sample --study studies/demo.yaml"),
    )
    commands = parser.add_subparsers(title="commands, in the order of a campaign", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, argilla: bool
    ) -> argparse.ArgumentParser:
        prog = as_called(f"python -m annotation {name}")
        example = f"example: {prog} --study studies/demo.yaml"
        added = commands.add_parser(name, prog=prog, help=text, description=text, epilog=example)
        added.set_defaults(run=run)
        if name != "serve":
            cli.add_study_options(added)
        if argilla:
            add_data_option(added)
        return added

    add_plan_options(add("plan", _plan, "how many pairs and raters are needed, and what they cost", argilla=True))
    _add_sample_options(add("sample", _sample, "draw the pairs or items that people rate", argilla=True))
    add_serve_options(
        add("serve", serve, "start Argilla on this machine and keep it running until Ctrl-C", argilla=True)
    )
    _add_preview_options(
        add("preview", _preview, "write a page that shows what raters will see of each queue", argilla=False)
    )
    add("publish", publish_pairs, "publish the pairs to the annotators in Argilla", argilla=True)
    add("simulate", _simulate, "rehearse: let the study's simulated raters answer", argilla=True)
    _add_collect_options(add("collect", _collect, "fetch the answers given so far", argilla=True))
    add("status", _status, "how far the study is, who is behind, what is decided, and what to do next", argilla=True)
    add_review_options(add("review", review, "show signs of careless answers; decide which raters count", argilla=True))
    accepting = add("accept", _accept, "compute agreement and verdicts from the collected answers", argilla=False)
    accepting.add_argument(
        "--amend", metavar="REASON", help="why the rules changed after the first rating; every report shows it"
    )
    add_outcome_commands(add)
    add("report", _report, "write the report: one HTML page, and its tables as CSV", argilla=False)
    add_judge_commands(commands)
    add_crowd_commands(commands)
    add_user_commands(commands)
    add_commands(commands)
    return parser


def _add_sample_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--extend",
        metavar="REASON",
        help="add the pairs that the study asks for now to a sample that raters may have seen, as a further wave;"
        " what was offered stays as it is, and the reason is kept",
    )


def _add_preview_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs", type=cli.count, default=SHOWN, metavar="N", help="pairs of a queue at most (default: %(default)s)"
    )


def _add_collect_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replace", action="store_true", help="also drop answers collected earlier that the server no longer has"
    )
    parser.add_argument("--csv", metavar="FILE", type=cli.local, help="read the answers from a file instead of Argilla")
    example = "pair=NAME,rater=NAME,quality=NAME,fluency=NAME[,time=NAME][,comment=NAME]"
    parser.add_argument(
        "--argilla", metavar="FOLDER", type=cli.local, help="read the answers from what `export --argilla` wrote"
    )
    parser.add_argument("--columns", metavar="MAPPING", help=f"which column of the file holds what: {example}")


if __name__ == "__main__":
    cli.run(main)
