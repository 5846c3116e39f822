"""Publishing a study's pairs to its annotators: a dataset in Argilla for each queue, created once and filled up.

Raters see a pair's two texts and its languages, and nothing else: Argilla hides metadata in its pages but not in its
API, so facts that could sway a rater (the data set, which pairs are controls) are not sent, and the local server hides
the pairs' ids. Each rater's queue is shuffled separately, on the local server and on an Argilla elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from annotation.argilla.accounts import Admission, admit_annotators, is_offered, refuse_unknown
from annotation.argilla.client import Argilla, DatasetListing, translated
from annotation.argilla.dataset import (
    COMMENT,
    SHOWN,
    QuestionForm,
    Words,
    answered,
    give_task,
    put_right,
    question_of,
    send_pairs,
    values_in,
)
from annotation.campaign.counting import excluded_raters
from annotation.campaign.names import account_pseudonym
from annotation.campaign.offering import alone, begin_offering, refuse_other_sample
from annotation.campaign.rubric import Rubric
from annotation.human.order import OrderDrawing, drawing_of
from annotation.page.task import task_of
from annotation.page.training import TrainingItem, read_items
from annotation.ratings.answers import Answer, last_snapshot
from annotation.ratings.decisions import note_again
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import mismatch
from annotation.server import Connection
from annotation.verdicts.counted import Place
from annotation.verdicts.evidence import Evidence, write_looks
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.preregistration import fix_rules, rubric_to_ask
from annotation.verdicts.tables import of_group
from plumbline.errors import StudyError
from plumbline.fields import fields_of
from plumbline.importing import argilla as rg
from plumbline.records import ARGILLA, Pair
from plumbline.study import Study
from plumbline.words import count


@dataclass(frozen=True)
class Publication:
    """The result of publishing."""

    new: Mapping[str, int]  #: pairs that were not in Argilla before, by dataset
    admission: Admission
    corrected: Mapping[str, str] = field(default_factory=dict)  #: corrections of unanswered datasets, by dataset
    taken_out: int = 0  #: unanswered withdrawn pairs that were removed
    answered: int = 0  #: withdrawn pairs that stay because they have answers or drafts
    set_aside: int = 0  #: answers of excluded raters whose pairs are offered to others again
    back: int = 0  #: such answers that count again because the exclusion was taken back
    blocks: Mapping[Place, BlockProgress] = field(default_factory=dict)  #: progress of the blocks, for a rule by blocks
    unopened: frozenset[str] = frozenset()  #: pairs, controls and repeats that raters do not get (yet)
    spared: int = 0  #: pairs of later blocks that were removed because an earlier block has decided
    singly: bool = False  #: whether outputs that the study wants together are shown one at a time

    def lines(self) -> list[str]:
        """Return lines on what changed in Argilla, and on the progress of each verdict's blocks."""
        by_change: dict[str, list[str]] = {}
        for name, correction in self.corrected.items():
            by_change.setdefault(correction, []).append(name)
        numbers = {
            "unanswered withdrawn pairs removed from Argilla": self.taken_out,
            "withdrawn pairs that stay in Argilla because they have answers or drafts": self.answered,
            "answers of excluded raters set aside, so that others are asked for these pairs": self.set_aside,
            "answers that count again in Argilla because their raters are no longer excluded": self.back,
        }
        out = f"removed because a look at an earlier block has decided: {count(self.spared, 'unanswered record')}"
        return [
            *(
                f"corrected in unanswered datasets: {correction} ({', '.join(names)})"
                for correction, names in by_change.items()
            ),
            *(f"{line}: {number}" for line, number in numbers.items() if number),
            *(f"{of_group(key)}: {'; '.join(group.lines())}" for key, group in self.blocks.items()),
            *([out] if self.spared else []),
            *([_SINGLY] if self.singly else []),
        ]


_SINGLY = "sample.together: the page of this Argilla shows one output at a time; Plumbline's own server shows all"


def publish(
    study: Study,
    argilla: Argilla,
    reads: Mapping[str, Sequence[str]] | None = None,
    ahead: Mapping[Place, int] | None = None,
) -> Publication:
    """Publish the study's pairs, controls and repeats to its annotators.

    Creates missing workspaces and datasets, adds missing pairs (by pair id), and lets in the annotators who read a
    queue's languages (`reads`, by user name; annotators with unknown languages are let in everywhere). Answers stay:
    those of excluded raters are set aside, so that their pairs are open to others again, and brought back if the
    exclusion is taken back. Withdrawn pairs are not sent, and removed while nobody has answered them. Fixes the rules
    of the verdicts; a corrected wording reaches the datasets while nobody has answered. Raises StudyError or DataError
    for a sample that is no longer the study's, for rules that changed after the first rating, and for datasets with
    answers to other questions or words. In a study with `raters.blocks`, the blocks that the recorded answers open are
    sent, and `ahead` has the least number of open blocks for each verdict's group. Pairs beyond a block that has
    decided are removed while nobody has answered them.
    """
    with alone(study):
        records = Evidence(study)
        rubric, pairs = rubric_to_ask(records)[0], records.shown
        refuse_other_sample(records)
        if changed := mismatch(records, pairs):
            raise StudyError(*changed)
        if fault := _other_fields(rubric, pairs):
            raise StudyError(f"{study.file}: {fault}; run `{study.command('sample')}` again")
        training = read_items(study, rubric)
        targets = [
            _Target.of(study, rubric, queue, queue_pairs, training, ours=has_rating_page(argilla.connection))
            for queue, queue_pairs in queues_of(pairs).items()
        ]
        for target in targets:  # refused before rules are fixed or datasets are created
            if fault := target.words.too_much():
                raise StudyError(
                    f"{study.file}: Argilla cannot show rubric {rubric.name!r}: {fault}; change the rubric"
                )
        if not is_offered(study):
            _refuse_anothers(argilla, targets, study)
        _refuse_answered(argilla, rubric.name, targets, study.command("accept"))
        refuse_unknown(study, argilla)
        fix_rules(records)
        begin_offering(records, ARGILLA, rubric)
        for name in sorted({target.workspace for target in targets} - set(argilla.workspaces())):
            argilla.request("POST", "/workspaces", json={"name": name})
        admission = admit_annotators(study, argilla, reads or {})
        set_aside, back = _offer_excluded(records, argilla, targets, rubric)
        if set_aside:  # looks wait for the answers that replace excluded ones
            records = Evidence(study)
        withdrawn = records.withdrawn
        write_looks(records)
        unopened = records.unopened(ahead or {})
        new, corrected = _fill(argilla, targets, {*withdrawn, *unopened})
        n_removed, staying = _take_out(argilla, targets, withdrawn)
        spared, _ = _take_out(argilla, targets, records.spared - withdrawn.keys())
        singly = study.sample.together and not has_rating_page(argilla.connection)
        looks = records.blocks, frozenset(unopened), spared
        return Publication(new, admission, corrected, n_removed, staying, set_aside, back, *looks, singly)


def _offer_excluded(records: Evidence, argilla: Argilla, targets: Sequence[_Target], rubric: Rubric) -> tuple[int, int]:
    """Offer excluded raters' pairs again, and bring back answers that count again; return how many of each.

    Argilla hides a record from everybody else once it has the wanted number of submitted responses, whoever gave them.
    So responses of excluded raters are discarded there, if the pair has too few others: their values stay, and the
    record is open again. Only answers in the last snapshot are set aside, and `offered_again.json` records each
    beforehand, so that `collect` keeps them as they were. If an exclusion is taken back, they are submitted again;
    answers given meanwhile are surplus.
    """
    study, noted, excluded = records.study, records.answers_again, excluded_raters(records.decided)
    if not noted and not excluded:
        return 0, 0
    set_aside, back = list[_Response](), list[_Response]()
    answers = [answer for part in last_snapshot(study.folder, ARGILLA).values() for answer in part.answers]
    collected = {(answer.pair_id, answer.rater_id): answer for answer in answers if answer.status == "submitted"}
    for target, responses in _responses(argilla, targets, study.name):
        unchanged = [response for response in responses if response.says(collected, target, rubric)]
        if responses[0].pair_id not in records.withdrawn:
            set_aside += _surplus(unchanged, responses, excluded, target.per_pair)
        back += [response for response in unchanged if response.comes_back(excluded, noted)]
    note_again(records, [(response.pair_id, response.rater_id) for response in set_aside])
    for status, some in (("discarded", set_aside), ("submitted", back)):
        for response in some:
            body = {"values": response.response["values"], "status": status}
            argilla.request("PUT", f"/responses/{response.response['id']}", json=body)
    return len(set_aside), len(back)


@dataclass(frozen=True)
class _Target:
    """The intended dataset of a queue."""

    queue: Queue
    pairs: Mapping[str, Pair]
    workspace: str
    name: str
    per_pair: int  #: wanted answers for each pair
    drawing: OrderDrawing | None
    words: Words

    @classmethod
    def of(
        cls,
        study: Study,
        rubric: Rubric,
        queue: Queue,
        pairs: Sequence[Pair],
        training: Sequence[TrainingItem],
        *,
        ours: bool,
    ) -> _Target:
        """Return the dataset of a queue's pairs, rated on our page (`ours`) or on Argilla's."""
        by_id = {pair.pair_id: pair for pair in pairs}
        per_pair, drawing = study.raters_of(queue.pool), drawing_of(study, pairs)
        workspace, name = queue.workspace(study.name), queue.dataset(study.name)
        task = task_of(study, rubric, queue, name, training=training, drawing=drawing) if ours else None
        return cls(queue, by_id, workspace, name, per_pair, drawing, Words.of(rubric, queue, task=task))

    def listed(self, datasets: Mapping[tuple[str, str], DatasetListing]) -> DatasetListing | None:
        """Return the dataset in the server's list; None if it is missing."""
        return datasets.get((self.workspace, self.name))


def has_rating_page(connection: Connection | None) -> bool:
    """Return whether the study's annotators rate on our page, which our own server alone has."""
    return connection is not None and connection.home is not None


def _take_out(argilla: Argilla, targets: Sequence[_Target], withdrawn: Collection[str]) -> tuple[int, int]:
    """Remove unanswered pairs, each checked just before; return (gone, staying)."""
    n_removed, staying, datasets = 0, 0, argilla.datasets() if withdrawn else {}
    for target in targets:
        dataset, out = target.listed(datasets), target.pairs.keys() & set(withdrawn)
        if dataset is None or not out:
            continue
        ids = [record["id"] for record in argilla.records(dataset.id) if record["external_id"] in out]
        for record_id in ids:
            if argilla.request("GET", f"/records/{record_id}").get("responses"):
                staying += 1
            else:
                argilla.request("DELETE", f"/records/{record_id}")
                n_removed += 1
    return n_removed, staying


def _other_fields(rubric: Rubric, pairs: Sequence[Pair]) -> str:
    """Return how the sample's fields differ from the rubric's; empty if they are equal."""
    for pair in pairs:
        wanted = [(shown_field.name, shown_field.kind) for shown_field in rubric.fields.of(pair.pool)]
        if [(shown_field.name, shown_field.kind) for shown_field in fields_of(pair)] != wanted:
            return (
                f"rubric {rubric.name!r} shows the fields {', '.join(name for name, _ in wanted)} of {pair.pool},"
                f" but the sample has {', '.join(shown_field.name for shown_field in fields_of(pair))}"
            )
    return ""


def _refuse_anothers(argilla: Argilla, targets: Sequence[_Target], study: Study) -> None:
    """Refuse datasets with pairs of another study of this name, before anything is changed."""
    listed = argilla.datasets()
    for target in targets:
        dataset = target.listed(listed)
        if dataset and any(record["external_id"] not in target.pairs for record in argilla.records(dataset.id)):
            raise StudyError(
                f"{study.file}: Argilla at {argilla.url} has a dataset {target.name!r} with pairs of another study"
                f" named {study.name!r}, or of this one before its records were deleted; give this one another `name`,"
                " and run its commands again from the first"
            )


def _refuse_answered(argilla: Argilla, rubric_name: str, targets: Sequence[_Target], accept: str) -> None:
    """Refuse to change words or questions that were answered, before anything is changed."""
    listed = argilla.datasets()
    datasets = [(target, dataset) for target in targets if (dataset := target.listed(listed)) is not None]
    published = [(target, dataset.id) for target, dataset in datasets if dataset.status != "draft"]
    shown_now = [(target, Words.shown(argilla, dataset_id)) for target, dataset_id in published]
    changed = [(target, current, diff) for target, current in shown_now if (diff := target.words.corrects(current))]
    if not changed or not any(answered(argilla, dataset_id) for _, dataset_id in published):
        return
    target, current, diff = changed[0]
    if target.words.forms != current.forms:
        was, present = ({name: str(form) for name, form in words.forms.items()} for words in (current, target.words))
        raise StudyError(
            f"the dataset {target.name!r} in Argilla asks {was}, but the rubric"
            f" {rubric_name!r} asks {present}, and raters have answered; give the new study another name"
        )
    raise StudyError(
        f"the dataset {target.name!r} in Argilla shows other words than the rubric {rubric_name!r} ({diff}),"
        " and raters have answered them; undo the change, or collect, then give the reason with"
        f' `{accept} --amend "reason"`'
    )


def _fill(argilla: Argilla, targets: Sequence[_Target], out: Set[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Create missing datasets and send pairs not `out`; return by dataset how many, and the correction of its words."""
    listed, new, corrected = argilla.datasets(), dict[str, int](), dict[str, str]()
    for target in targets:
        dataset = target.listed(listed)
        if dataset is not None and dataset.status != "draft":
            stays, correction = _put_right(argilla, dataset, target)
            corrected |= {target.name: correction} if correction else {}
            if not stays:
                argilla.request("DELETE", f"/datasets/{dataset.id}")
            elif (min_submitted := dataset.distribution["min_submitted"]) != target.per_pair:
                raise StudyError(
                    f"the dataset {target.name!r} in Argilla wants {min_submitted} answers a pair, but"
                    f" raters.per_pair is now {target.per_pair}; undo the change, or give the new study another name"
                )
        address, ids = (target.workspace, target.name), target.pairs.keys() - out
        pairs = [target.pairs[pair_id] for pair_id in ids]
        _, new[target.name] = fill(argilla, address, target.words, target.per_pair, pairs, target.drawing)
    return new, corrected


def fill(
    argilla: Argilla,
    address: tuple[str, str],
    words: Words,
    per_pair: int,
    pairs: Sequence[Pair],
    drawing: OrderDrawing | None,
) -> tuple[str, int]:
    """Create a dataset (workspace and name) if it is missing, and send the pairs that it lacks.

    Returns its id, and how many pairs were missing. A draft comes from an interrupted run: nobody has seen it, so it is
    created anew.
    """
    listed = argilla.datasets().get(address)
    if listed is not None and listed.status == "draft":
        argilla.request("DELETE", f"/datasets/{listed.id}")
        listed = None
    dataset_id = create_dataset(argilla, words, address, per_pair) if listed is None else listed.id
    present = {record["external_id"] for record in argilla.records(dataset_id)} if listed is not None else set[str]()
    if not present:  # new, or a crash came before it was marked
        give_task(argilla, dataset_id, words.task, drawing)
    missing = [pair for pair in pairs if pair.pair_id not in present]
    send_pairs(argilla, dataset_id, address[1], missing, words.extra_texts, drawing)
    return dataset_id, len(missing)


def _put_right(argilla: Argilla, dataset: DatasetListing, target: _Target) -> tuple[bool, str]:
    """Correct a dataset without answers; return whether its questions let it take more pairs, and the corrections."""
    words, published = target.words, Words.shown(argilla, dataset.id)
    fixed = target.drawing is not None and target.drawing.number  # see `give_task`
    correction = words.corrects(published)
    if not words.fits(published):
        return False, correction
    if correction:
        put_right(argilla, dataset.id, words, target.drawing)
    elif not fixed and words.shows_otherwise(published) and not answered(argilla, dataset.id):
        give_task(argilla, dataset.id, words.task, target.drawing)
        correction = "the rating page"
    return True, correction


def create_dataset(
    argilla: Argilla, words: Words, address: tuple[str, str], per_pair: int, below: ExtraField | None = None
) -> str:
    """Create a dataset with these words that wants `per_pair` answers; return its id.

    `address` are workspace and name; `below` is a field below the texts.
    """
    client = argilla.sdk
    settings = settings_of(words, per_pair, client, below)
    with translated(argilla.url):
        return str(rg.Dataset(name=address[1], workspace=address[0], settings=settings, client=client).create().id)


@dataclass(frozen=True)
class ExtraField:
    """A Markdown field outside the rubric, which may be empty; the platform writes it and escapes every text in it."""

    name: str
    title: str


def settings_of(words: Words, per_pair: int, client: Any, below: ExtraField | None = None) -> rg.Settings:
    """Return a dataset's settings for Argilla; `below` adds a field between the texts and the keys."""
    # The texts are data, never Markdown: a rater must see them as they are.
    fields = [
        rg.ChatField(name=name, title=title, use_markdown=False, _client=client)
        if words.kinds.get(name) == "chat"
        else rg.TextField(name=name, title=title, use_markdown=False, client=client)
        for name, title in words.fields.items()
    ]
    if below is not None:
        extra = rg.TextField(name=below.name, title=below.title, use_markdown=True, required=False, client=client)
        fields.insert(-1, extra)
    return rg.Settings(
        guidelines=words.guidelines,
        fields=fields,
        questions=[
            question_of(name, *words.questions[name], form, client)
            for name, form in {**words.forms, COMMENT: QuestionForm("text", (), required=False)}.items()
        ],
        metadata=[rg.TermsMetadataProperty(name=name, visible_for_annotators=True, client=client) for name in SHOWN],
        distribution=rg.TaskDistribution(min_submitted=per_pair),
    )


@dataclass(frozen=True)
class _Response:
    """A response of a rater."""

    pair_id: str
    rater_id: str
    response: Mapping[str, Any]

    def says(self, collected: Mapping[tuple[str, str], Answer], target: _Target, rubric: Rubric) -> bool:
        """Return whether the response has the collected values."""
        answer = collected.get((self.pair_id, self.rater_id))
        current = values_in(self.response, rubric.asked(target.queue.pool))
        return answer is not None and current == (dict(answer.values), answer.comment)

    def comes_back(self, excluded: Collection[str], noted: Collection[tuple[str, str]]) -> bool:
        """Return whether the answer was set aside and its rater counts again."""
        discarded = self.response["status"] == "discarded"
        return discarded and self.rater_id not in excluded and (self.pair_id, self.rater_id) in noted


def _surplus(
    unchanged: Sequence[_Response], responses: Sequence[_Response], excluded: Collection[str], wanted: int
) -> list[_Response]:
    """Return excluded raters' responses to a pair, if it has too few others."""
    submitted = [response for response in responses if response.response["status"] == "submitted"]
    if sum(response.rater_id not in excluded for response in submitted) >= wanted:
        return []
    return [response for response in unchanged if response.rater_id in excluded and response in submitted]


def _responses(
    argilla: Argilla, targets: Sequence[_Target], study_name: str
) -> Iterator[tuple[_Target, list[_Response]]]:
    """Yield the responses to each answered pair, with its dataset."""
    raters = {user.id: account_pseudonym(study_name, user.id, simulated=user.simulated) for user in argilla.users()}
    listed = argilla.datasets()
    for target in targets:
        dataset = target.listed(listed)
        for record in argilla.records(dataset.id) if dataset is not None else ():
            responses = [
                _Response(record["external_id"], raters.get(response["user_id"], ""), response)
                for response in record.get("responses") or []
            ]
            if responses and record["external_id"] in target.pairs:
                yield target, responses
