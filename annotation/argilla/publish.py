"""Putting a study's pairs before its annotators: a dataset in Argilla for each queue, made once and filled up.

Raters see a pair's two texts and its languages, and nothing else: Argilla hides metadata in its pages but not in its
API, so what could sway a rater (the data set, which pairs are controls) is not sent. Pairs go in the order of their
ids, which are hashes: the order of arrival tells nothing either. Each rater's queue is a shuffle of its own; the local
server does so, and Argilla elsewhere too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from annotation.argilla.accounts import Admission, admit_annotators, refuse_unknown
from annotation.argilla.client import Argilla, DatasetListing, translated
from annotation.argilla.dataset import (
    COMMENT,
    SHOWN,
    QuestionForm,
    Suggested,
    Words,
    answered,
    mark_dataset,
    put_right,
    question_of,
    send_pairs,
    suggestions_for,
)
from annotation.human.order import drawing_of
from annotation.names import account_pseudonym
from annotation.offering import alone, begin_offering, refuse_other_sample
from annotation.ratings.answers import Answer, last_snapshot
from annotation.ratings.exclusions import read_decisions, withdrawn_pairs
from annotation.ratings.ratings import excluded_raters, note_again, read_again, read_all_ratings
from annotation.rubric import Rubric, load_rubric
from annotation.sampling.origin import refuse_other_prompts
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_shown, refuse_other_half
from annotation.verdicts.preregistration import asked_rubric, first_rating, fix_rules
from plumbline.errors import StudyError
from plumbline.fields import fields_of
from plumbline.records import ARGILLA, Pair
from plumbline.study import Study

if TYPE_CHECKING:
    import argilla as rg


@dataclass(frozen=True)
class Publication:
    """What publishing did."""

    new: Mapping[str, int]  #: pairs that were not there before, by dataset
    admission: Admission
    corrected: Mapping[str, str] = field(default_factory=dict)  #: what an unanswered dataset says otherwise now
    taken_out: int = 0  #: withdrawn pairs that nobody had answered, and that are no longer there
    answered: int = 0  #: withdrawn pairs that stay, since they have answers or drafts
    aside: int = 0  #: answers of excluded raters whose pairs are offered to others again
    back: int = 0  #: such answers that count again, since the exclusion was taken back

    def withdrawals(self) -> list[str]:
        """What became of withdrawn pairs, in lines."""
        gone = f"withdrawn pairs without an answer taken out of Argilla: {self.taken_out}"
        stay = f"withdrawn pairs that stay in Argilla, since they have answers or drafts: {self.answered}"
        return [line for line, number in ((gone, self.taken_out), (stay, self.answered)) if number]

    def replacements(self) -> list[str]:
        """What became of the answers of excluded raters, in lines."""
        aside = (
            f"offered again, since their raters are excluded: the pairs of {self.aside} answers, which stay on record"
        )
        back = f"answers that count again in Argilla, since their raters are kept: {self.back}"
        return [line for line, number in ((aside, self.aside), (back, self.back)) if number]

    def corrections(self) -> list[str]:
        """A line for each correction, with the datasets that have it."""
        by_change: dict[str, list[str]] = {}
        for name, what in self.corrected.items():
            by_change.setdefault(what, []).append(name)
        return [
            f"corrected, where nobody had answered: {what} ({', '.join(names)})" for what, names in by_change.items()
        ]


def publish(
    study: Study,
    argilla: Argilla,
    reads: Mapping[str, Sequence[str]] | None = None,
    suggestions: Suggested | None = None,
) -> Publication:
    """Put the study's pairs, controls and repeats before its annotators.

    Makes workspaces and datasets where they are missing, adds pairs that are not there yet (by pair id), and lets in
    the annotators who read a queue's languages (`reads`, by user name; those of whom nothing is known everywhere).
    Answers stay: those of excluded raters are set aside, so that their pairs are open to others again, and brought back
    where an exclusion was taken back (`offer_again`). Withdrawn pairs are not sent, and taken out as long
    as nobody has answered them. Fixes the rules by which they will be judged; a corrected wording reaches the datasets
    while nobody has answered. Raises StudyError or DataError for a sample that is no longer the study's, for rules that
    changed after the first rating, and for datasets with answers to other questions or words. `suggestions` are what
    the half of an experiment shows, by pair (`annotation.anchoring`); a study that makes none shows none.
    """
    with alone(study):
        return _publish(study, argilla, reads or {}, suggestions or {})


def _publish(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]], suggestions: Suggested) -> Publication:
    (rubric, _), pairs = rubric_to_ask(study), read_shown(study)
    refuse_other_half(study, pairs)
    shown = suggestions_for(study, pairs, suggestions)
    refuse_other_prompts(study, pairs)
    refuse_other_sample(study)
    refuse_other_fields(study, rubric, pairs)
    _refuse_too_much(study, rubric, pairs)
    _refuse_answered(study, argilla, rubric, pairs)
    refuse_unknown(study, argilla)
    fix_rules(study)
    begin_offering(study, ARGILLA, rubric)
    workspaces = argilla.workspaces()
    for name in sorted({queue.workspace(study) for queue in queues_of(pairs)} - set(workspaces)):
        argilla.request("POST", "/workspaces", json={"name": name})
    admission = admit_annotators(study, argilla, reads)
    corrected, withdrawn = dict[str, str](), withdrawn_pairs(study)
    new = _fill(study, argilla, rubric, (pairs, withdrawn, shown), corrected)
    gone, staying = _take_out(study, argilla, pairs, withdrawn)
    aside, back = offer_again(study, argilla, rubric, pairs, withdrawn)
    return Publication(new, admission, corrected, gone, staying, aside, back)


def _take_out(study: Study, argilla: Argilla, pairs: Sequence[Pair], withdrawn: Collection[str]) -> tuple[int, int]:
    """Take withdrawn pairs out that nobody has answered, one by one, each looked at just before; (gone, staying)."""
    gone, listed = 0, argilla.datasets() if withdrawn else {}
    staying = 0
    for queue, queue_pairs in queues_of(pairs).items():
        dataset = listed.get((queue.workspace(study), queue.dataset(study)))
        out = {pair.pair_id for pair in queue_pairs} & set(withdrawn)
        if dataset is None or not out:
            continue
        ids = [record["id"] for record in argilla.records(dataset.id) if record["external_id"] in out]
        for record_id in ids:
            if argilla.request("GET", f"/records/{record_id}").get("responses"):
                staying += 1
            else:
                argilla.request("DELETE", f"/records/{record_id}")
                gone += 1
    return gone, staying


def refuse_other_fields(study: Study, rubric: Rubric, pairs: Sequence[Pair]) -> None:
    """Raise StudyError where the sample has other fields than the rubric shows now."""
    for pair in pairs:
        wanted = [(shown_field.name, shown_field.kind) for shown_field in rubric.fields.of(pair.pool)]
        if [(shown_field.name, shown_field.kind) for shown_field in fields_of(pair)] != wanted:
            raise StudyError(
                f"{study.file}: rubric {rubric.name!r} shows of {pair.pool} {', '.join(name for name, _ in wanted)},"
                f" and the sample has {', '.join(shown_field.name for shown_field in fields_of(pair))}; run"
                f" `{study.command('annotation sample')}` again"
            )


def rubric_to_ask(study: Study) -> tuple[Rubric, bool]:
    """What `publish` asks: the study's own, and once a rating was collected the one that was fixed; whether it was."""
    begun = first_rating(read_all_ratings(study)) is not None
    return (asked_rubric(study) if begun else load_rubric(study)), begun


def _refuse_too_much(study: Study, rubric: Rubric, pairs: Sequence[Pair]) -> None:
    """Refuse what Argilla would refuse, before the rules are fixed and half of the datasets made."""
    for queue in queues_of(pairs):
        if what := Words.of(rubric, queue).too_much():
            raise StudyError(f"{study.file}: rubric {rubric.name!r} is too much for Argilla: {what}; change the rubric")


def _refuse_answered(study: Study, argilla: Argilla, rubric: Rubric, pairs: Sequence[Pair]) -> None:
    """Refuse other words or questions than those that were answered, before anything is changed anywhere."""
    listed = argilla.datasets()
    datasets = {queue: listed.get((queue.workspace(study), queue.dataset(study))) for queue in queues_of(pairs)}
    open_now = {
        queue: dataset.id for queue, dataset in datasets.items() if dataset is not None and dataset.status != "draft"
    }
    shown_now = {queue: Words.shown(argilla, dataset_id) for queue, dataset_id in open_now.items()}
    wanted = {queue: Words.of(rubric, queue) for queue in shown_now}
    changed = {queue: what for queue in shown_now if (what := wanted[queue].corrects(shown_now[queue]))}
    if not changed or not any(answered(argilla, dataset_id) for dataset_id in open_now.values()):
        return
    queue, what = next(iter(changed.items()))
    if wanted[queue].forms != shown_now[queue].forms:
        raise StudyError(
            f"the dataset {queue.dataset(study)!r} in Argilla asks {_asked(shown_now[queue])}, the rubric"
            f" {rubric.name!r} {_asked(wanted[queue])}, and there are answers; give the new study another name"
        )
    raise StudyError(
        f"the dataset {queue.dataset(study)!r} in Argilla shows other words than the rubric {rubric.name!r} ({what}),"
        " and there are answers to them; undo the change, or collect, and say why in"
        f' `{study.command("annotation accept")} --amend "reason"`'
    )


def _asked(words: Words) -> dict[str, str]:
    return {name: str(form) for name, form in words.forms.items()}


def _fill(
    study: Study,
    argilla: Argilla,
    rubric: Rubric,
    sample: tuple[Sequence[Pair], Collection[str], Suggested],
    corrected: dict[str, str],
) -> dict[str, int]:
    """Make the datasets that are missing, and send the pairs that are; returns how many, by dataset.

    `sample` are all pairs, which of them are not sent since they were withdrawn, and what some of them show. Notes in
    `corrected` what a dataset says otherwise than before.
    """
    listed, new, (pairs, withdrawn, shown) = argilla.datasets(), {}, sample
    for queue, wanted in queues_of(pairs).items():
        name = queue.dataset(study)
        dataset = listed.get((queue.workspace(study), name))
        if dataset is not None:
            stays, what = _put_right(argilla, dataset, Words.of(rubric, queue))
            corrected |= {name: what} if what else {}
            if not stays:
                argilla.request("DELETE", f"/datasets/{dataset.id}")
                dataset = None
        if dataset is None:
            where = (queue.workspace(study), name)
            dataset_id, present = create_dataset(argilla, rubric, queue, where, study.raters_of(queue.pool)), set[str]()
        else:
            dataset_id = dataset.id
            _check_answers(study, queue, dataset.distribution["min_submitted"])
            present = {record["external_id"] for record in argilla.records(dataset_id)}
        drawing = drawing_of(study, wanted)
        if not present:  # new, or a crash came before it was marked
            mark_dataset(argilla, dataset_id, drawing)
        present |= set(withdrawn)
        missing = sorted((pair for pair in wanted if pair.pair_id not in present), key=lambda pair: pair.pair_id)
        beside = Words.of(rubric, queue).beside
        send_pairs(argilla, dataset_id, name, missing, beside, shown, drawing)
        new[name] = len(missing)
    return new


def _put_right(argilla: Argilla, dataset: DatasetListing, words: Words) -> tuple[bool, str]:
    """Whether a dataset can be filled up, and what was corrected: one that nobody answered says the right words then.

    An earlier run was cut off while it made a draft: nobody has seen it, so it is made anew, as is one that asks other
    questions, which nobody has answered (`_refuse_answered`).
    """
    if dataset.status == "draft":
        return False, ""
    now = Words.shown(argilla, dataset.id)
    what = words.corrects(now)
    if not words.fits(now):
        return False, what
    if what:
        put_right(argilla, dataset.id, words)
    return True, what


def create_dataset(
    argilla: Argilla, rubric: Rubric, queue: Queue, where: tuple[str, str], per_pair: int, *, note: str = ""
) -> str:
    """A dataset for pairs of a queue: what was asked, the fields, the questions, a free comment, `per_pair` answers.

    `where` are the workspace's name and its own; `note` (Markdown) stands above and below the guidelines. Returns the
    dataset's id; raises ServiceError.
    """
    import argilla as rg  # noqa: PLC0415 (takes a second)

    client = argilla.sdk
    settings = settings_of(Words.of(rubric, queue, note), per_pair, client)
    with translated(argilla.url):
        return str(rg.Dataset(name=where[1], workspace=where[0], settings=settings, client=client).create().id)


def settings_of(words: Words, per_pair: int, client: Any) -> rg.Settings:
    """What a dataset shows and asks, in Argilla's terms."""
    import argilla as rg  # noqa: PLC0415 (takes a second)

    return rg.Settings(
        guidelines=words.guidelines,
        # Never Markdown: the texts are data, and a rater must see them as they are.
        fields=[
            rg.ChatField(name=name, title=title, use_markdown=False, _client=client)
            if words.kinds.get(name) == "chat"
            else rg.TextField(name=name, title=title, use_markdown=False, client=client)
            for name, title in words.fields.items()
        ],
        questions=[
            question_of(name, *words.questions[name], form, client)
            for name, form in {**words.forms, COMMENT: QuestionForm("text", (), required=False)}.items()
        ],
        metadata=[rg.TermsMetadataProperty(name=name, visible_for_annotators=True, client=client) for name in SHOWN],
        distribution=rg.TaskDistribution(min_submitted=per_pair),
    )


def _check_answers(study: Study, queue: Queue, min_submitted: int) -> None:
    """Refuse a dataset that wants another number of answers a pair: they would be too few, or too many."""
    wanted = study.raters_of(queue.pool)
    if min_submitted != wanted:
        raise StudyError(
            f"the dataset {queue.dataset(study)!r} in Argilla asks {min_submitted} answers a pair, raters.per_pair"
            f" is now {wanted}; undo the change, or give the new study another name"
        )


@dataclass(frozen=True)
class _Response:
    """A response of a rater, and the answer of the same rater as it was collected last."""

    pair_id: str
    rater_id: str
    response: Mapping[str, Any]

    def says(self, before: Answer, rubric: Rubric, pool: str) -> bool:
        """Whether it has the values that were collected."""
        submitted = self.response.get("values") or {}
        values = {
            question.name: question.kept(submitted.get(question.name, {}).get("value"))
            for question in rubric.asked(pool)
        }
        comment = submitted.get(COMMENT, {}).get("value") or ""
        return (values, comment) == (dict(before.values), before.comment)


def offer_again(
    study: Study, argilla: Argilla, rubric: Rubric, pairs: Sequence[Pair], withdrawn: Collection[str]
) -> tuple[int, int]:
    """Offer pairs of excluded raters to others again: their answers are set aside on the server, and stay on record.

    Argilla hides a record from everybody else once it has as many submitted responses as it wants, whoever gave them.
    So those of excluded raters are discarded there: their values stay, and the record is open again. Only answers that
    are in the last snapshot are set aside, and `offered_again.json` notes each before it is: `collect` then keeps them
    as they were. Where an exclusion is taken back they are submitted again; what others answered meanwhile is surplus.
    Returns how many answers were set aside and brought back; `withdrawn` pairs are offered to nobody.
    """
    decisions, noted = read_decisions(study), read_again(study)
    excluded = excluded_raters(decisions)
    if not noted and not (excluded and study.raters.replace_excluded):
        return 0, 0
    collected = {
        (answer.pair_id, answer.rater_id): answer
        for part in last_snapshot(study, ARGILLA).values()
        for answer in part.answers
    }
    of_pair = {pair.pair_id: pair for pair in pairs}
    aside, back = list[_Response](), list[_Response]()
    for wanted, responses in _responses(study, argilla, pairs):
        unchanged = [
            response
            for response in responses
            if (before := collected.get((response.pair_id, response.rater_id))) is not None
            and before.status == "submitted"
            and response.says(before, rubric, of_pair[response.pair_id].pool)
        ]
        valid = [
            response
            for response in responses
            if response.response["status"] == "submitted" and response.rater_id not in excluded
        ]
        if study.raters.replace_excluded and len(valid) < wanted and responses[0].pair_id not in withdrawn:
            aside += [
                response
                for response in unchanged
                if response.rater_id in excluded and response.response["status"] == "submitted"
            ]
        back += [
            response
            for response in unchanged
            if response.rater_id not in excluded
            and response.response["status"] == "discarded"
            and (response.pair_id, response.rater_id) in noted
        ]
    note_again(study, [(response.pair_id, response.rater_id) for response in aside], decisions)
    for status, some in (("discarded", aside), ("submitted", back)):
        for response in some:
            body = {"values": response.response["values"], "status": status}
            argilla.request("PUT", f"/responses/{response.response['id']}", json=body)
    return len(aside), len(back)


def _responses(study: Study, argilla: Argilla, pairs: Sequence[Pair]) -> Iterator[tuple[int, list[_Response]]]:
    """The responses to each pair that has some, with how many it wants."""
    raters = {user.id: account_pseudonym(study.name, user.id, simulated=user.simulated) for user in argilla.users()}
    listed = argilla.datasets()
    for queue, queue_pairs in queues_of(pairs).items():
        dataset, ids = (
            listed.get((queue.workspace(study), queue.dataset(study))),
            {pair.pair_id for pair in queue_pairs},
        )
        for record in argilla.records(dataset.id) if dataset is not None else ():
            responses = [
                _Response(record["external_id"], raters.get(response["user_id"], ""), response)
                for response in record.get("responses") or []
            ]
            if responses and record["external_id"] in ids:
                yield study.raters_of(queue.pool), responses
