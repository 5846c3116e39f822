"""A study's settings for crowd workers: their pay, who may work, and how much each may do."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, field_validator

from plumbline.addresses import entrance, refuse_no_address
from plumbline.errors import StudyError
from plumbline.languages import language_code, territory_name
from plumbline.study.base import StudyPart, Words, worded

# HTEB, Ethical Considerations: dollars an hour, at least; and extra pay for longer texts, as a share of the pay.
FAIR_WAGE = 24.0
EXTRA_PAY = {"expansion": 0.25, "summarised_expansion": 0.10}

# The countries where PTEB recruited readers of each language (appendix B); a study names those of other languages.
PTEB_COUNTRIES: dict[str, tuple[str, ...]] = {
    "ar": ("DZ", "EG", "IQ", "JO", "LB", "MA", "SA", "SD", "SY", "TN"),
    "de": ("AT", "DE", "CH"),
    "es": ("AR", "BO", "CL", "CO", "CR", "DO", "GT", "HN", "MX", "PA", "PY", "PE", "PR", "ES", "US"),
    "fr": ("BE", "CA", "FR", "CH"),
    "ha": ("BJ", "CM", "TD", "GH", "NE", "NG", "TG"),
    "ru": ("AM", "BY", "BR", "EE", "GE", "DE", "KZ", "KG", "LV", "LT", "RU", "UA", "US"),
    "sw": ("BI", "CD", "KE", "MZ", "RW", "SD", "TZ", "UG"),
    "tr": ("TR",),
}
_ANY = "en"  # a text that stands in for languages without one
_GROUPS = ("EU", "EZ", "UN", "ZZ")  # codes of CLDR that are no countries


def _country(code: str) -> str:
    name = territory_name(code) if re.fullmatch("[A-Z]{2}", code) else "Unknown"
    if name.startswith("Unknown") or code in _GROUPS:
        hint = " (the United Kingdom is GB)" if code.upper() == "UK" else ""
        raise ValueError(
            f"no country has the code {code!r}; use two capital letters (ISO 3166-1), such as DE or US{hint}"
        )
    return code


Country = Annotated[str, AfterValidator(_country)]

PlatformName = Literal["prolific", "link", "rehearsal", "mturk"]
PLATFORMS: tuple[PlatformName, ...] = get_args(PlatformName)


Device = Literal["desktop", "tablet", "mobile"]


class PaySpec(StudyPart):
    """The pay for a pair, in dollars: time at an hourly wage (HTEB, Ethical Considerations)."""

    hourly: float = Field(default=FAIR_WAGE, gt=0, le=500, description="pay for an hour of work, in dollars")
    seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="expected seconds per pair, for all questions; workers who need longer are paid a bonus",
    )

    @property
    def below_fair(self) -> str:
        """A sentence on a wage below HTEB's; empty for others."""
        return f"The pay is less than HTEB's ${FAIR_WAGE:g} an hour." if self.hourly < FAIR_WAGE else ""


PresetName = Literal["connect", "sona", "prolific", "mailing_list", "generic"]
#: Each platform's name, and what its own documentation calls participant and session in an address
#: (docs/howto/links.md); empty for a session that the platform does not send.
PRESETS: dict[PresetName, tuple[str, str, str]] = {
    "connect": ("CloudResearch Connect", "participantId", "assignmentId"),
    "sona": ("SONA", "survey_code", ""),
    "prolific": ("Prolific", "PROLIFIC_PID", "SESSION_ID"),
    "mailing_list": ("the study", "participant", "signature"),
    "generic": ("the platform", "participant", "session"),
}


class LinkSpec(StudyPart):
    """A platform that sends people by a link, and the address at the end."""

    preset: PresetName = Field(
        description="the platform, which determines the parameters' names; generic: `participant` and `session`, for"
        " any platform whose links you compose"
    )
    complete: dict[str, str] = Field(
        default={},
        description=(
            "web address to which participants return, one for all batches or one for each; {code} and {participant}"
            " are filled in; without an address the code is shown"
        ),
    )

    @field_validator("complete", mode="before")
    @classmethod
    def _for_all(cls, value: object) -> object:
        return {"": value} if isinstance(value, str) else value

    @field_validator("complete")
    @classmethod
    def _addresses(cls, value: dict[str, str]) -> dict[str, str]:
        for address in value.values():
            refuse_no_address(address.partition("?")[0], "https://example.org/done")
        return value

    @property
    def names(self) -> tuple[str, str]:
        """The parameters of participant and session; empty for a session that the platform does not send."""
        _, participant, session = PRESETS[self.preset]
        return participant, session

    @property
    def title(self) -> str:
        """The platform's name for people."""
        return PRESETS[self.preset][0]


class CrowdSpec(StudyPart):
    """A campaign with crowd workers; each batch is `sample.batch` pairs of a queue."""

    review_days: ClassVar[float] = 7.0  #: until MTurk approves a submission by itself
    approval: ClassVar[int] = 95  #: a worker's approval rate must be above this, in percent (PTEB, appendix B)
    approved: ClassVar[int] = 1000  #: smallest number of approved tasks that a worker must have (PTEB, appendix B)
    hours: ClassVar[float] = 1.0  #: time limit for a batch (PTEB, appendix B)
    days: ClassVar[float] = 7.0  #: for which a batch is offered

    platform: PlatformName | None = Field(default=None, description="the platform, unless --platform names one")
    link: LinkSpec | None = Field(default=None, description="for `link`: the platform that sends people")
    pay: PaySpec = Field(default=PaySpec(), description="workers' pay")
    share: float = Field(
        default=0.5, gt=0, le=1, description="largest share of the study's batches that one worker may do"
    )
    countries: dict[str, tuple[Country, ...]] = Field(
        default={}, description="countries to recruit in, by language code; default for a language: PTEB's list"
    )
    devices: tuple[Device, ...] = Field(
        default=("desktop", "tablet", "mobile"),
        min_length=1,
        description="devices that may take part, where the platform can tell them apart (Prolific): phones are mobile",
    )
    fee: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="the fee of Prolific (see your contract), or of the platform behind `link`, as a share of rewards"
        " and bonuses",
    )
    consent: dict[str, Words] = Field(
        default={},
        description=(
            "the text that workers consent to before they begin: one text, or texts by language code,"
            " one of them English; default: Plumbline's (annotation/crowd/words)"
        ),
    )
    address: str = Field(
        default="",
        description="https address of the running Argilla server that participants open (Prolific, link); its path, if"
        " any, is the server's",
    )

    @field_validator("consent", mode="before")
    @classmethod
    def _by_code(cls, value: object) -> object:
        if isinstance(value, str):
            return {_ANY: worded(value)}
        if isinstance(value, dict) and value and _ANY not in value:
            raise ValueError("the English text is missing; add `en`, which languages without a text use")
        return {language_code(code): text for code, text in value.items()} if isinstance(value, dict) else value

    @field_validator("countries")
    @classmethod
    def _by_language(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {language_code(language): countries for language, countries in value.items()}

    @field_validator("address")
    @classmethod
    def _reachable(cls, value: str) -> str:
        return entrance(value) if value else value

    def countries_of(self, language: str) -> tuple[str, ...]:
        """Return the countries to recruit readers of a language (code) in. Raises StudyError if none are named."""
        countries = self.countries.get(language) or PTEB_COUNTRIES.get(language)
        if not countries:
            raise StudyError(
                f"crowd.countries has no countries for {language!r}, nor do PTEB's lists; add"
                f" `{language}: [..]` with the countries' codes"
            )
        return countries
