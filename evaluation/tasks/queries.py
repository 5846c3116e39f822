"""What mteb measures of each query of a search, noted while it scores a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from plumbline.statistics.abstention import confidences

Similarities = Mapping[str, Mapping[str, float]]  # of each query's passages that were ranked
#: mteb's main metrics of searches, as trec_eval calls them of a query
OF_QUERY = {"ndcg_at_10": "ndcg_cut_10", "map_at_1000": "map_cut_1000"}


@dataclass(frozen=True)
class QueryScores:
    """The queries of one subset, in one order: their metric, and their confidences (`statistics.abstention`)."""

    metric: list[float]
    sure: list[tuple[float, float, float]]


@dataclass
class Queries:
    """Notes each query's `metric` (mteb's name of the main metric) and confidences, a part a subset."""

    metric: str
    parts: list[QueryScores] = field(default_factory=list)

    def on(self, task: Any) -> None:
        """Watch a task of mteb's (`AbsTaskRetrieval`) that is about to be scored."""
        task.task_specific_scores = partial(self._note, task, task.task_specific_scores)

    def _note(
        self, task: Any, measure: Callable[..., Any], scores: Any, qrels: Any, results: Any, **others: Any
    ) -> Any:
        """Mteb's own hook, which is given all queries' metrics and similarities."""
        ranked = _without_first(results) if task.skip_first_result else results
        name = OF_QUERY[self.metric]
        sure = [confidences(list(ranked[query].values())) for query in scores]
        self.parts.append(QueryScores([float(query_scores[name]) for query_scores in scores.values()], sure))
        return measure(scores, qrels, results, **others)


def _without_first(results: Similarities) -> dict[str, dict[str, float]]:
    """As mteb scores tasks whose first passage is the query itself."""
    return {
        query: dict(sorted(ranking.items(), key=lambda passage: passage[1], reverse=True)[1:])
        for query, ranking in results.items()
    }
