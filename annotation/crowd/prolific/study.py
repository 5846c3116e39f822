"""A batch as a study of Prolific's: what participants read, what they are paid, who may take part."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import langcodes

from annotation.crowd import platform as pay
from annotation.crowd.page import consent_of
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import Room, crowd_with_address
from annotation.questions import worded
from annotation.verdicts.preregistration import asked_rubric
from annotation.wordings import ENGLISH
from plumbline.errors import StudyError
from plumbline.study import Study

COUNTRY, FLUENT = "current-country-of-residence", "fluent-languages"
LEAVE_OUT = "participant_group_blocklist"
#: What Prolific calls countries otherwise than CLDR does.
OTHER_NAMES = {"TR": ("turkey", "turkiye"), "CD": ("congo democratic republic", "democratic republic of the congo"),
               "CI": ("ivory coast",), "CZ": ("czech republic",), "HK": ("hong kong",), "MM": ("myanmar", "burma"),
               "CV": ("cape verde",), "SZ": ("swaziland",), "MK": ("macedonia",)}  # fmt: skip
OTHER_LANGUAGES = {"zh": ("mandarin", "chinese mandarin"), "fa": ("farsi",), "el": ("greek modern",)}
PARAMETERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def study_body(
    study: Study, offer: Offer, room: Room, token: str, wanted: list[dict[str, Any]], project: str | None
) -> dict[str, Any]:
    """What Prolific is sent to make a study; `token` is its internal name, `wanted` its filters."""
    crowd = crowd_with_address(study)
    hours = pay.assumed_hours([pair.transformation for pair in offer.pairs], crowd.pay)
    minutes = max(1, math.ceil(hours * 60))
    body = {
        "name": _name(study, offer),
        "internal_name": token,
        "description": _description(study, offer, _consent(study, offer), crowd.contact),
        "external_study_url": f"{room.address}?{PARAMETERS}",
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": room.code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]},
            {
                "code": room.return_code,
                "code_type": "OTHER",
                "actions": [
                    {
                        "action": "REQUEST_RETURN",
                        "return_reason": "You did not consent, or missed a question about the instructions twice.",
                    }
                ],
            },
        ],
        "total_available_places": offer.places,
        "estimated_completion_time": minutes,
        "maximum_allowed_time": max(math.ceil(crowd.hours * 60), 2 * minutes + 5),
        "reward": offer.reward,
        "device_compatibility": ["desktop", "tablet"],
        "peripheral_requirements": [],
        "submissions_config": {"max_submissions_per_participant": 1},
        "filters": wanted,
    }
    return body | ({"project": project} if project else {})


def filters(study: Study, offer: Offer, choices: Mapping[str, Mapping[str, str]], group: str) -> list[dict[str, Any]]:
    """Who may take part: in the languages' countries, fluent in all of them, approved often, not in `group`.

    `choices` are Prolific's own, by filter: labels by id. Countries that it does not offer are left out. Raises
    StudyError where it offers none of them, or not the language.
    """
    crowd = crowd_with_address(study)
    readers = sorted(offer.batch.queue.languages)
    countries = dict.fromkeys(code for language in readers for code in crowd.countries_of(language))
    countries_offered = _matching(
        choices.get(COUNTRY, {}), [name for code in countries for name in _country_names(code)]
    )
    if not countries_offered:
        raise StudyError(f"{study.file}: Prolific has none of crowd.countries ({', '.join(countries)}); name others")
    wanted: list[dict[str, Any]] = [{"filter_id": COUNTRY, "selected_values": countries_offered}]
    for language in readers:
        fluent = _matching(choices.get(FLUENT, {}), _language_names(language))
        if not fluent:
            raise StudyError(
                f"{study.file}: Prolific cannot look for readers of {language!r} (it has no such fluent language);"
                " use MTurk for it"
            )
        wanted.append({"filter_id": FLUENT, "selected_values": fluent})
    wanted.append({"filter_id": "approval_rate", "selected_range": {"lower": crowd.approval + 1, "upper": 100}})
    wanted.append({"filter_id": "approval_numbers", "selected_range": {"lower": crowd.approved}})
    wanted.append({"filter_id": LEAVE_OUT, "selected_values": [group]})
    return wanted


def _matching(choices: Mapping[str, str], names: Iterable[str]) -> list[str]:
    by_label = {_folded(label): key for key, label in choices.items()}
    return list(dict.fromkeys(by_label[name] for name in names if name in by_label))


def _country_names(code: str) -> tuple[str, ...]:
    name = langcodes.Language.make(territory=code).territory_name("en")
    return (_folded(name), *OTHER_NAMES.get(code, ()))


def _language_names(code: str) -> tuple[str, ...]:
    return (_folded(langcodes.Language.get(code).display_name("en")), *OTHER_LANGUAGES.get(code, ()))


def _folded(label: str) -> str:
    """Without accents, capitals and signs: `Türkiye` is turkiye, `Chinese (Mandarin)` chinese mandarin."""
    bare = "".join(mark for mark in unicodedata.normalize("NFKD", label) if not unicodedata.combining(mark))
    return " ".join("".join(mark if mark.isalnum() else " " for mark in bare.casefold()).split())


def _consent(study: Study, offer: Offer) -> str:
    language = asked_rubric(study).language_for(offer.batch.language, offer.batch.output_language)
    return consent_of(crowd_with_address(study), language)


def _languages(offer: Offer) -> list[str]:
    codes = dict.fromkeys((offer.batch.language, offer.batch.output_language))
    return [langcodes.Language.get(code).display_name("en") for code in codes]


def _name(study: Study, offer: Offer) -> str:
    """What participants see in the list: what is compared, or, of another subject, what its rubric calls the work."""
    rubric, languages = asked_rubric(study), " and ".join(_languages(offer))
    if not rubric.fields.shown:
        return f"Compare {len(offer.pairs)} pairs of texts ({languages})"
    return f"{worded(rubric.pool(offer.batch.pool).title, ENGLISH)}: {len(offer.pairs)} items ({languages})"


def _description(study: Study, offer: Offer, consent: str, contact: str) -> str:
    """Prolific shows it as HTML: what comes from the study's file is escaped."""
    rubric, languages = asked_rubric(study), " and ".join(_languages(offer))
    what = (
        f"You will work on {len(offer.pairs)} items in {languages}."
        f" {worded(rubric.pool(offer.batch.pool).asked, ENGLISH)}"
        if rubric.fields.shown
        else f"You will read {len(offer.pairs)} pairs of texts in {languages}. Each pair is a text"
        " and a version of it that a computer program has written. You rate how well the version was made."
    )
    parts = [
        what,
        "You work on our own pages. At the end you get a completion code there.",
        f"You will be asked to agree to this: {consent}",
    ]
    if contact:
        parts.append(f"Questions: {contact}")
    return "".join(f"<p>{html.escape(part)}</p>" for part in parts)
