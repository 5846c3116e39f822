"""The commands of a campaign, from the sample to the report."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Group, Parameter
from cyclopts.validators import LimitedChoice

from annotation.argilla import accounts
from annotation.argilla.client import connect
from annotation.argilla.publish import Publication
from annotation.argilla.simulate import simulate
from annotation.argilla.training import training_lines
from annotation.campaign.names import known_names, named, pseudonym_of
from annotation.campaign.offering import ARGILLA, LEDGER, alone, places_asked, present_campaigns
from annotation.campaign.records import OFFERED, PAIRS, RATINGS, SUPPLY, CampaignRecords, collected_files, shown_files
from annotation.campaign.rubric import placeholder_lines
from annotation.commands.annotators import unread_lines
from annotation.crowd.platform import first_campaign
from annotation.crowd.tally import counted
from annotation.csv_answers import collect_csv, columns_of
from annotation.export import FormName, export
from annotation.human.records import ANSWERS
from annotation.human.simulated import read_items as read_task_items
from annotation.human.tasks import read_tasks, task_lines
from annotation.judges.check import differences_text, means_text
from annotation.judges.powered import read_outcome
from annotation.options import CampaignOptions, HomeOptions
from annotation.page.training import read_items
from annotation.preview import FILE as PREVIEW
from annotation.preview import write_preview
from annotation.questions.wordings import addressed_lines
from annotation.ratings.answers import answers_line
from annotation.ratings.decisions import decide, review_text, withdraw
from annotation.records import NO_REASON, Decision
from annotation.rounds import put_out, take_in
from annotation.sampling.candidates import flagged_supply
from annotation.sampling.controls import ControlDesign
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import draw_sample, extend_sample, sample_settings
from annotation.server import Home, has_database
from annotation.status.next_step import NextStep, next_step
from annotation.status.status import once_ended, read_status, unreviewed, with_server
from annotation.status.text import fitted, headline, say_next
from annotation.verdicts import tables
from annotation.verdicts.acceptance import accept, answers_lines
from annotation.verdicts.conclusion import known_verdicts
from annotation.verdicts.counted import ahead_of_sample, never_lines, size_line
from annotation.verdicts.doubts import doubts_text
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import waiting_text
from annotation.verdicts.preferences import choices_exhibit, preferences_exhibit
from annotation.verdicts.preregistration import asked_rubric, rubric_to_ask
from annotation.verdicts.systems import differences_exhibit, systems_exhibit
from generation.output_statistics import flagged_lines
from plumbline.cli import Count, Local, Several, StudyOptions
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.reading import read_text
from plumbline.records import Pair
from plumbline.resources import installing
from plumbline.study import Study
from plumbline.study.campaign import RatersSpec
from plumbline.study_files import checked
from plumbline.words import count


def say_unread(records: CampaignRecords, reads: Mapping[str, Sequence[str]]) -> None:
    """Print the queues that no annotator reads, by the known languages."""
    queues = {queue: len(pairs) for queue, pairs in queues_of(records.pairs).items()}
    for line in unread_lines(records.study.name, records.study.raters.people, queues, reads):
        print(f"  {line}")


def say_flagged(records: CampaignRecords) -> None:
    """Print the number of sampled outputs with error types."""
    for line in flagged_lines(flagged_supply(records.drawn_from)):
        print(f"  {line}")


def say_verdicts(study: Study, pairs: Sequence[Pair], *, published: bool = False) -> None:
    """Print how many verdicts a sample is for, what each can rest on, and which can never be decided.

    `published` is whether raters may have seen it.
    """
    groups = ahead_of_sample(pairs, study.acceptance, study.raters_of)
    for line in [
        size_line(groups, study.called.item, study.acceptance),
        *never_lines(study, groups, offered=published),
    ]:
        print(f"  {line}")


def short_lines(study: Study, records: CampaignRecords) -> Iterator[str]:
    """Yield a line for each group of which fewer items were drawn than the study asks for."""
    drawn = Counter(pair.transformation for pair in records.shown if pair.drawn)
    for name, kind in study.kinds.items() if study.judging.has_size else ():
        if drawn[name] < study.sample.pairs:
            systems = study.judging.transforms and kind.queue
            sources = "originals with usable outputs of all systems" if systems else study.judging.sources
            yield (
                f"{name}: {count(drawn[name], study.called.item)}, but the study asks for {study.sample.pairs:,}; no"
                f" more {sources} differ enough"
            )


def sample_lines(study: Study, records: CampaignRecords) -> Iterator[str]:
    """Yield what a drawn sample lacks, and what it asks of people."""
    if study.judging.does_tasks:
        yield from task_lines(read_tasks(study), read_task_items(study))
    design = ControlDesign.of(study, records.rubric)
    for pool in design.unchecked(pair.pool for pair in records.pairs):
        yield f"no controls for {pool}: add right answers, `expected`, to its `raters` (docs/transformations.md)"
    if not study.raters.blocks and (lacking := design.lacking(records.pairs, records.controls)):
        yield lacking
    yield from placeholder_lines(study, records.rubric)
    yield from short_lines(study, records)
    for supply in records.drawn_from:
        yield from supply.lines(study.judging)
    texts = {(pair.language, pair.output_language) for pair in records.shown}
    yield from addressed_lines(study, records.rubric, texts)
    tally = counted(study, records.rubric, records.shown)
    yield from tally.lines()
    spare = len(records.controls) - tally.controls - tally.repeats
    if spare and tally.in_batches and not study.raters.blocks:
        yield f"{count(spare, 'further control')} for a pilot (crowd launch --pilot), which nobody is shown without one"


def sample(
    *, options: CampaignOptions, extend: Annotated[str | None, Parameter(metavar="REASON")] = None
) -> StudyOptions:
    """Draw the pairs that people rate.

    Example: plumbline sample --study studies/demo.yaml

    Args:
        options: The study and the server.
        extend: Add the pairs that the study now asks for to a sample that raters may have seen, as a further wave;
            offered pairs stay as they are, and the reason is recorded.
    """
    study = checked(options)
    judging = study.judging
    inputs = [study.folder / name for name in judging.drawn_from] or study.data_files()
    outputs = [*shown_files(study.folder), study.folder / "sample.json"]
    with stage(study, "sample", inputs, outputs, sample_settings(study.sample, study.judging, study.raters.blocks)):
        wave = extend_sample(study, extend) if extend is not None else None
        pairs = draw_sample(study)
    item = study.called.item
    if wave is not None:
        print(f"{study.name}: wave {wave.number} adds {count(wave.pairs, item)} to the sample")
    records = CampaignRecords(study)  # read again, now that the sample is drawn
    checks = judging.checks(Counter(pair.control for pair in records.controls))
    print(
        f"{study.name}: {count(len(pairs), item)} drawn, and {checks} -> {study.folder / 'pairs.parquet'},"
        " controls.parquet"
    )
    for line in sample_lines(study, records):
        print(f"  {line}")
    say_verdicts(study, pairs)
    say_flagged(records)
    say_unread(records, accounts.languages_unasked(options.home))
    return options


def preview(*, options: StudyOptions, pairs: Count = 3) -> StudyOptions:
    """Write a page that shows each queue as raters see it.

    Example: plumbline preview --study studies/demo.yaml

    Args:
        options: The study.
        pairs: Pairs to show of each queue, at most (default: 3).
    """
    study = checked(options)
    records = CampaignRecords(study)
    with stage(study, "preview", shown_files(study.folder), [study.folder / PREVIEW]):
        page = write_preview(records, pairs)
    print(f"{study.name}: preview of raters' pages -> {page}; open it in a browser")
    for line in placeholder_lines(study, records.rubric):
        print(f"  {line}")
    return options


def publish_pairs(*, options: CampaignOptions) -> StudyOptions:
    """Send the pairs to Argilla, where annotators rate them.

    Example: plumbline publish --study studies/demo.yaml
    """
    study, home = options.load(), options.home
    records = CampaignRecords(study)
    pairs = records.pairs  # no server is started to say that there are none
    read_items(study, rubric := rubric_to_ask(records)[0])
    if placeholders := placeholder_lines(study, records.rubric):
        raise StudyError(*placeholders)
    with connect(home) as argilla:
        reads = accounts.languages_at(argilla, home)
        done, training = put_out(study, home, argilla)
    new, datasets, workspaces = sum(done.new.values()), len(done.new), ", ".join(done.admission.readers)
    sent = f"{count(new, 'new record')} ({study.called.item}s, {study.called.known} and repeats)"
    print(f"{study.name}: {sent} published in {count(datasets, 'dataset')}; workspaces: {workspaces}")
    for line in [*done.lines(), *training_lines(training)]:
        print(f"  {line}")
    if done.admission.out:
        print(f"  taken out of the study, since they are excluded or raters.people does not name them:"
              f" {', '.join(done.admission.out)}; their answers stay on the server")  # fmt: skip
    if not study.raters.simulated:
        warn_of_readers(study.raters, done)
        say_unread(records, reads)
    texts = {(pair.language, pair.output_language) for pair in records.shown}
    for line in addressed_lines(study, rubric, texts):
        print(f"  {line}")
    say_verdicts(study, pairs, published=True)
    if records.has(SUPPLY):
        say_flagged(records)
    return options


def warn_of_readers(raters: RatersSpec, done: Publication) -> None:
    """Warn of languages with too few annotators, and of annotators whose languages are unknown.

    Unknown languages need no warning if the study names its people and one workspace has all that they see.
    """
    for workspace, readers in done.admission.readers.items():
        if readers < raters.per_pair:
            print(
                f"  {workspace}: {count(readers, 'annotator')} for these languages, but each pair needs"
                f" {raters.per_pair}"
            )
    if done.admission.unknown and (raters.people is None or len(done.admission.readers) > 1):
        print(f"  {count(done.admission.unknown, 'annotator')} whose languages are unknown can access every queue"
              f" (set the languages: plumbline users add NAME --languages en,de)")  # fmt: skip


def simulate_raters(*, options: CampaignOptions) -> StudyOptions:
    """Rehearse: simulated raters answer.

    Example: plumbline simulate --study studies/demo.yaml
    """
    study = options.load()
    CampaignRecords(study).need(PAIRS)  # no server is started to say that there are none
    with stage(study, "simulate"), connect(options.home, existing=True) as argilla:
        answered = simulate(study, argilla)
    drawn = f"; {study.judging.simulation}" if answered and study.judging.simulation else ""
    print(f"{study.name}: {count(answered, 'answer')} given by simulated raters{drawn}")
    return options


def collect_answers(  # noqa: PLR0913  # a command's options
    *,
    options: CampaignOptions,
    replace: bool = False,
    csv: Local | None = None,
    sheet: Annotated[str, Parameter(metavar="NAME")] = "",
    columns: Annotated[str, Parameter(metavar="MAPPING")] = "",
    participants: Annotated[Local | None, Parameter(metavar="CSV")] = None,
    archive: Annotated[Local | None, Parameter(metavar="CSV")] = None,
) -> StudyOptions:
    """Fetch the answers given so far, in Argilla and by a crowd.

    Example: plumbline collect --study studies/demo.yaml

    Args:
        options: The study and the server.
        replace: Also drop answers collected earlier that the server or the crowd's platform no longer has.
        csv: Read the answers from a file (CSV or Excel) instead of Argilla.
        sheet: The sheet of an Excel file, if several have rows.
        columns: The file's columns: pair=NAME,rater=NAME,quality=NAME,fluency=NAME[,time=NAME][,comment=NAME]; instead
            of pair, give the texts: original=NAME,output=NAME.
        participants: For people who came by links: the platform's CSV of participants; only theirs are collected, and
            later files add more.
        archive: Read a result file from the MTurk site instead.
    """
    study, home = options.load(), options.home
    records = CampaignRecords(study)
    places = places_asked(records)
    if archive or participants or places - {ARGILLA}:
        from annotation.crowd.commands import collect_archive, collect_campaigns  # noqa: PLC0415 (a crowd alone)
    if bool(csv) != bool(columns):
        hint = "for a file that Plumbline exported, codebook.md in its folder has the whole command"
        raise StudyError(f"--csv and --columns go together: the file, and the meaning of its columns; {hint}")
    if csv:
        noted = {"csv": str(csv), "sheet": sheet, "columns": columns}  # the next step names them
        with stage(study, "collect", shown_files(study.folder), collected_files(study.folder), noted):
            named_columns = columns_of(asked_rubric(records).asked(), columns)
            collect_csv(study, home, csv, named_columns, sheet=sheet, replace=replace, say=print)
    elif archive:
        collect_archive(study, home, archive, replace=replace)
        return options
    else:
        records.need(PAIRS)  # no server is started to say that there are none
        if participants or places - {ARGILLA}:
            collect_campaigns(study, options, replace=replace, participants=participants)
            if ARGILLA not in places:
                return options
        elif study.crowd and not places and not has_database(home):
            offer = f"`{study.command('publish')}`, or for a crowd `{first_campaign(study).command(study, 'plan')}`"
            raise StudyError(f"{study.name}: nobody was asked yet; first {offer}")
        with connect(home, existing=True) as argilla:
            take_in(study, home, argilla, replace=replace)
    print(f"{study.name}: {answers_line(CampaignRecords(study))} -> {study.folder / 'ratings.parquet'}")
    return options


_AT_MOST_ONE = Group("At most one of these", validator=LimitedChoice(0, 1))


def review(
    *,
    options: CampaignOptions,
    exclude: Annotated[tuple[str, ...], Several, Parameter(metavar="RATER...", group=_AT_MOST_ONE)] = (),
    keep: Annotated[tuple[str, ...], Several, Parameter(metavar="RATER...", group=_AT_MOST_ONE)] = (),
    judged: Annotated[bool, Parameter(group=_AT_MOST_ONE)] = False,
    answers: Annotated[str, Parameter(metavar="SUBMISSION", group=_AT_MOST_ONE)] = "",
    reason: Annotated[str | None, Parameter(metavar="TEXT")] = None,
) -> StudyOptions | None:
    """Show signs of careless answers, and a crowd's work that waits; exclude raters.

    Example: plumbline review --study studies/demo.yaml

    Args:
        options: The study and the server.
        exclude: Exclude raters (pseudonyms or names): their answers stay in the data but no longer count.
        keep: Keep raters: their answers count, whatever was decided before, and no verdict waits for a review of them
            until they change or add answers.
        judged: Show the pairs on which people and judges differ most, after `accept`.
        answers: Show the answers of a crowd worker's submission, pair by pair.
        reason: Your reason; it is recorded with the decision.
    """
    if reason is not None and not (exclude or keep):
        raise StudyError("--reason goes with --exclude or --keep: name the rater that it is about")
    study = options.load()
    if judged:
        print(differences_text(Evidence(study)))
        return options
    crowded = bool(present_campaigns(study.scratch / LEDGER))
    if answers or crowded:
        from annotation.crowd.commands import show_submission, show_waiting  # noqa: PLC0415 (a crowd alone)
    if answers:
        return _ended(show_submission(Evidence(study), answers), options)
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    names = known_names(options.home, study.name)
    raters = [pseudonym_of(name, names) for name in exclude or keep]
    if not raters:
        look = show_waiting(evidence) if crowded else None
        choice = show_signs(evidence, names, needed=not crowded)
        return _ended(look or choice, options)
    with alone(study):
        decision = decide(study, *raters, exclude=bool(exclude), reason=reason or "", signs=evidence.signs, names=names)
    say_decision(study, decision, [named(rater, names) for rater in raters])
    admit_again(study, options.home)
    return options


def admit_again(study: Study, home: Home) -> None:
    """Take out of Argilla whom people excluded, who may be at work, and let in whom they keep."""
    if not accounts.is_offered(study):
        return
    if accounts.is_served(home):
        with connect(home, existing=True) as argilla:
            accounts.admit_annotators(study, argilla, accounts.languages_at(argilla, home))
    else:
        print(f"  the server does not run: {study.command('publish')} tells it who may rate")


def _ended(choice: tuple[str, str] | None, options: CampaignOptions) -> CampaignOptions | None:
    """Print what a person who decides pastes; without that return the options: the study's own step comes next."""
    if choice is None:
        return options
    print(f"Next: {NextStep(*choice)}")
    return None


def say_decision(study: Study, decision: Decision, raters: Sequence[str]) -> None:
    """Print the decision about raters, who are named as people know them."""
    is_or_are, done = "is" if len(raters) == 1 else "are", "excluded" if decision.exclude else "kept"
    print(f"{study.name}: {', '.join(raters)} {is_or_are} {done}: {decision.reason}")


def show_signs(evidence: Evidence, names: Mapping[str, str], *, needed: bool = True) -> tuple[str, str] | None:
    """Print the evidence about each rater.

    Returns the command and words of a person who decides; None where nobody has to.

    `names` are raters' own, by pseudonym. Ratings are `needed` unless a crowd's work was printed before: of a test, or
    of nobody yet, there are none.
    """
    if not needed:
        if not evidence.has(RATINGS):
            return None
        print()
    evidence.need(RATINGS)
    waiting = [verdict for verdict in known_verdicts(evidence) if verdict.review.to_look_at]
    text = review_text(evidence, evidence.signs, evidence.unlooked, names)
    print(f"{fitted(waiting_text(waiting, names))}{text}")
    waited_for = [rater for verdict in waiting for rater in verdict.review.to_look_at]
    raters = list(dict.fromkeys([*waited_for, *unreviewed(evidence.signs, evidence.decisions)]))
    if not raters:
        return None
    review = evidence.study.command("review")
    commands = [
        f"{review} --{decision} {rater} --reason {NO_REASON}" for rater in raters for decision in ("keep", "exclude")
    ]
    print("\nTo decide, one of these for each rater, with your reason in the quotes:", *commands, sep="\n  ")
    counts = f"if you trust {raters[0]} after the evidence above: the answers go on counting"
    return commands[0], f"{counts}, and your reason in the quotes is recorded; if not, take `--exclude`"


def reach_verdicts(*, options: StudyOptions, amend: Annotated[str | None, Parameter(metavar="REASON")] = None) -> None:
    """Compute agreement and verdicts.

    Example: plumbline accept --study studies/demo.yaml

    Args:
        options: The study.
        amend: Why the rules changed after the first rating; every report shows it.
    """
    study = options.load()
    inputs = [study.folder / "pairs.parquet", study.folder / "ratings.parquet"]
    outputs = [study.folder / name for name in ("agreement.json", "verdicts.json", "pair_means.parquet")]
    people = study.judging.does_tasks
    outputs += [study.folder / ANSWERS] if people else []
    answered: list[str] = []
    with alone(study), stage(study, "accept", inputs, outputs) as manifest:
        done = accept(study, amend)
        if people:
            answered = answers_lines(done)
        judges, why_not = read_outcome(done.evidence, done.verdicts)
    status = read_status(done.evidence, datetime.now(UTC), done.verdicts, manifest)
    *lines, _ = headline(status, done.verdicts, done.side_by_side, done.preferred)  # the next step comes last
    print("\n".join([*lines, *([tables.SIMULATED] if status.simulated else [])]), end="\n\n")
    if not people:  # their agreement is the evaluation's, of whole answers and not of single questions
        print(f"Study {study.name}\n\n{tables.agreement_text(done.groups, study.called)}\n")
    if answered:
        print("\n".join([f"Answers that count, study {study.name}\n", *answered]), end="\n\n")
    rules = [tables.verdict_text(done.verdicts, study.called), *done.amendments]
    print(
        f"Verdicts, study {study.name}\n\n"
        + "\n".join(rules)
        + f"\n\n{doubts_text(status.doubts, study.judging, judged=True)}"
    )
    compared = [exhibit(done.side_by_side, study.called) for exhibit in (systems_exhibit, differences_exhibit)]
    for shown in (*compared, preferences_exhibit(done.preferred), choices_exhibit(done.preferred)):
        if len(shown.frame):
            print(f"\n{shown.text(most=_ROWS)}")
    if len(looks := tables.looks_frame(done.verdicts)):
        print(f"\n{tables.looks_exhibit(looks, study.called).text()}")
        if len((unbiased := tables.unbiased_exhibit(done.verdicts, study.called)).frame):
            print(f"\n{unbiased.text()}")
    if judges or why_not:
        print(f"\nJudges beside people, study {study.name}\n\n{means_text(judges) if judges else why_not}")
    print(f"Next: {next_step(with_server(status, done.evidence.collected, HomeOptions().home))}")


_ROWS = 60  # of systems or of their differences: more are not read in a terminal
_ONE = Group("One of these", validator=LimitedChoice(1))


def withdraw_pairs(
    *,
    options: StudyOptions,
    pair: Annotated[tuple[str, ...], Several, Parameter(metavar="ID...", group=_ONE)] = (),
    pairs_from: Annotated[Local | None, Parameter(group=_ONE)] = None,
    take_back: bool = False,
    reason: Annotated[str, Parameter(metavar="TEXT")] = "",
) -> StudyOptions:
    """Exclude pairs from rating and from results, with a reason.

    Example: plumbline withdraw --study studies/demo.yaml --pair 1a2b3c4d --reason "two texts in one"

    Args:
        options: The study.
        pair: Ids of pairs, or at least their first 8 characters, as `review` prints.
        pairs_from: A file with an id on each line.
        take_back: Let pairs that were withdrawn count again.
        reason: Your reason; it is recorded, and every report shows it.
    """
    study = options.load()
    ids: Sequence[str] = pair
    if pairs_from is not None:
        try:
            ids = read_text(pairs_from).split()
        except FileNotFoundError:
            raise StudyError(f"{pairs_from}: there is no such file; write one with an id on each line") from None
        if not ids:
            raise StudyError(f"{pairs_from} names no pair; write an id on each line")
    evidence = Evidence.read(study)
    evidence.refuse_other_rules()
    with alone(study):
        decisions = withdraw(study, ids, take_back=take_back, reason=reason)
    ratings = evidence.collected.ratings
    withdrawn = {decision.pair_id for decision in decisions}
    answers = ratings[ratings["pair_id"].isin(withdrawn) & (ratings["status"] == "submitted")].drop_duplicates(
        ["pair_id", "rater_id"]
    )
    pairs, of_them = count(len(decisions), "pair"), count(len(answers), "answer")
    done = "restored" if take_back else "withdrawn"
    again = "counting again" if take_back else "kept, and not counted"
    print(f"{study.name}: {pairs} {done} ({decisions[0].reason}); {of_them} {again}")
    if evidence.has(OFFERED):
        print(f"  to update Argilla, run `{study.command('publish')}`; pairs with answers or drafts stay there")
    return options


def export_ratings(
    *,
    options: StudyOptions,
    form: FormName = "csv",
    licence: Annotated[str, Parameter(metavar="TEXT")] = "",
    words: bool = False,
) -> StudyOptions:
    """Write the ratings as CSV, Excel file or data set.

    A codebook describes the tables.

    Example: plumbline export --study studies/demo.yaml

    Args:
        options: The study.
        form: csv; xlsx, one Excel file; or datasets, Parquet files in a folder for `datasets.load_dataset`.
        licence: The licence that the codebook names.
        words: Also write answers and comments in raters' own words, which may contain names.
    """
    study = options.load()
    with stage(study, "export", [study.folder / file for file in _REPORTED]):
        folder = export(study, form=form, licence=licence, words=words)
    codebook = {"csv": "codebook.md", "xlsx": "its sheet `codebook`", "datasets": "README.md"}[form]
    print(f"{study.name}: ratings -> {folder}; {codebook} describes the tables")
    return options


_REPORTED = ("pairs.parquet", "ratings.parquet", "looks.json", "decisions.json", "rules.json")


@contextlib.contextmanager
def _reporting(study: Study, name: str) -> Iterator[dict[str, Any]]:
    """Note a stage that reports on verdicts. Raises StudyError if a package of the extra `report` is missing."""
    with stage(study, name, [study.folder / file for file in _REPORTED], [study.folder / name]) as manifest:
        try:
            yield manifest
        except ModuleNotFoundError as error:
            raise StudyError(f"reports need {error.name}: {installing('report')}") from None


def report(*, options: StudyOptions) -> None:
    """Write the report on raters, agreement and verdicts.

    Example: plumbline ratings-report --study studies/demo.yaml
    """
    study = options.load()
    with _reporting(study, "report") as manifest:
        from annotation.report.page import write_report  # noqa: PLC0415 (extra `report`)

        page, status = write_report(study)
    print(f"{study.name}: report -> {page}, and its tables as CSV beside it")
    say_next(study, HomeOptions().home, once_ended(status, manifest))


def sheet(*, options: StudyOptions) -> StudyOptions:
    """Write HEDS 3.0, ARR's checklist D and a datasheet.

    Example: plumbline sheet --study studies/demo.yaml
    """
    study = options.load()
    with _reporting(study, "sheet"):
        from annotation.report.sheets.writing import write_sheets  # noqa: PLC0415 (extra `report`)

        lines = write_sheets(study)
    print("\n".join(lines))
    return options
