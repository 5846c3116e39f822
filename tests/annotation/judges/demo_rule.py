"""The rule by which the sample study's recorded judges answer (studies/demo/README.md)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist
from typing import Any

from annotation.judges.gold import GoldPair
from generation.recordings import load_recordings
from plumbline.records import Pair

JUDGES = {"shares": (0.36, 0.8), "numbers": (0.1, 1.1)}  # bias and standard deviation of the noise, in points
POINTS = (1, 2, 3, 4, 5)


def lines(judge: str, pairs: Iterable[Pair], outputs: Path, golds: Iterable[GoldPair]) -> list[str]:
    authors = {
        (one.transformation, one.text, one.output): {"quality": one.quality, "fluency": one.fluency}
        for one in load_recordings(outputs).values()
    }
    made = []
    for pair in pairs:
        ratings = authors[pair.transformation, pair.original, pair.transformed]
        answers = {
            question: answer(judge, question, rating, pair)
            for question, rating in ratings.items()
            if rating is not None
        }
        line = {"original": pair.original, "transformed": pair.transformed, "answers": answers}
        made.append(json.dumps(line, ensure_ascii=False))
    for gold in golds:
        noise, _ = drawn(judge, "similarity", gold)
        similarity = f"{min(max(gold.gold + noise, 0.0), 5.0):.1f}"
        line = {"original": gold.original, "transformed": gold.transformed, "answers": {"similarity": similarity}}
        made.append(json.dumps(line, ensure_ascii=False))
    return list(dict.fromkeys(made))


def drawn(judge: str, question: str, pair: Pair) -> tuple[float, bytes]:
    """The judge's noise, and the hash that it was drawn from."""
    digest = hashlib.sha256("|".join((judge, question, pair.original, pair.transformed)).encode()).digest()
    share = (int.from_bytes(digest[:4], "big") + 0.5) / 2**32
    return NormalDist(0, JUDGES[judge][1]).inv_cdf(share), digest


def answer(judge: str, question: str, rating: int, pair: Pair) -> Any:
    """What a judge says to a question on a pair that the author gave this rating."""
    bias, _ = JUDGES[judge]
    noise, digest = drawn(judge, question, pair)
    centre = rating + bias + noise
    if judge == "shares":
        weights = [math.exp(-((point - centre) ** 2) / (2 * 0.6**2)) for point in POINTS]
        return {
            str(point): round(0.97 * weight / sum(weights), 3) for point, weight in zip(POINTS, weights, strict=True)
        }
    number = min(max(round(centre), POINTS[0]), POINTS[-1])
    return f"about {number}" if digest[4] < 4 else str(number)
