"""Who has seen what judges say: adjudicators, what they answer, and the half of an experiment."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from plumbline.records import Number, Record


class Review(Record):
    """One time that pairs were given to adjudicators, who see judges' scores (`reviews.json`)."""

    at: AwareDatetime = Field(description="when, UTC; noted before the first request")
    pairs: tuple[str, ...] = Field(description="ids of the pairs that were asked for")
    adjudicators: tuple[str, ...] = Field(description="pseudonyms, as raters have them")
    judges: tuple[str, ...] = Field(description="the judges whose scores they see")


class Adjudication(Record):
    """What a person decided about a pair afterwards, having seen judges' scores (`adjudications.json`): no rating."""

    KEY = ("pair_id", "adjudicator", "question")
    pair_id: str = Field(description="which pair")
    adjudicator: str = Field(description="pseudonym, as raters have them")
    question: str = Field(description="name of the question")
    value: int | None = Field(description="the point on the scale; none where it was discarded, or has no scale")
    answer: str = Field(description="to a question without a scale: the label, the labels, the order, the text")
    suggested: int | None = Field(description="the judges' score that was shown as a suggestion; none where none was")
    rated: bool = Field(description="whether the adjudicator is one of the pair's own raters")
    status: Literal["submitted", "discarded"] = Field(description="discarded: the adjudicator could not say")
    comment: str = Field(description="the adjudicator's free comment")
    submitted_at: AwareDatetime = Field(description="when the answer last changed, UTC")


class ShownScore(Record):
    """What judges said of one pair of an experiment on anchoring, and whether raters see it (`suggestions.json`)."""

    KEY = ("pair_id", "question")
    pair_id: str = Field(description="which pair, of either half")
    shown: bool = Field(description="whether raters see it as a suggestion: a half that the seed drew; it never counts")
    question: str = Field(description="name of the question")
    value: int = Field(description="the mean of the judges' scores, as the nearest point of the scale")
    agent: str = Field(description="who says so: the judge, or whose mean it is")
    label_mass: Number = Field(description="how sure they were; NaN where nobody knows")
