"""Which of a study's queues somebody can answer, by the languages that annotators are known to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from annotation.sampling.queues import Queue
from annotation.verdicts.tables import count
from plumbline.languages import language_name
from plumbline.study import Study


def unread_lines(study: Study, queues: Mapping[Queue, int], reads: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each queue that no annotator reads; `queues` have their numbers of pairs.

    `reads` are languages (codes) by user name. Nothing is said where nobody's languages are known, and where one of
    the study's people is known without any: who reads what cannot be told then.
    """
    people = study.raters.people
    able = [set(codes) for name, codes in reads.items() if people is None or name in people]
    if not able or any(name not in reads for name in people or ()):
        return []
    return [
        f"nobody reads {_names(queue.languages)}: {count(number, 'pair')} of {queue.dataset(study)} wait for somebody"
        f" (`users add NAME --languages {','.join(sorted(queue.languages))}`), or for `languages` in the study"
        for queue, number in queues.items()
        if not any(queue.languages <= codes for codes in able)
    ]


def idle_lines(
    study: Study, queues: Iterable[Queue], reads: Mapping[str, Sequence[str]], names: Iterable[str]
) -> list[str]:
    """A line for each of some people who reads none of the study's queues; who reads what is unknown may read all."""
    wanted = sorted({_names(queue.languages) for queue in queues})
    able = {name: set(reads[name]) for name in names if reads.get(name)}
    return [
        f"{name} reads {_names(codes)}: nothing in {study.name} is for {name}; its queues are in {'; '.join(wanted)}"
        f" (`users add {name} --languages CODES` says what {name} reads)"
        for name, codes in able.items()
        if wanted and not any(queue.languages <= codes for queue in queues)
    ]


def target_lines(study: Study, reads: Mapping[str, Sequence[str]]) -> list[str]:
    """Before a sample is drawn: into which languages texts are put that no annotator reads."""
    people = study.raters.people
    read = {code for name, codes in reads.items() if people is None or name in people for code in codes}
    lines = []
    for name, kind in study.transforming.items():
        if kind.translates and kind.languages and read and (unread := sorted(set(kind.languages) - read)):
            able = [code for code in kind.languages if code in read]
            advice = f"; `languages: [{', '.join(able)}]` in the study leaves them out" if able else ""
            lines.append(f"{name} puts texts into {count(len(unread), 'language')} that no annotator reads{advice}")
    return lines


def _names(codes: Iterable[str]) -> str:
    return " and ".join(map(language_name, sorted(codes)))
