from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from plumbline.prompts import load_prompt, prompt_hash, prompts_of
from plumbline.study.transformations import EIGHT

PAPER: dict[str, str] = yaml.safe_load(Path(__file__).with_name("hteb_prompts.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAPER)
def test_a_prompt_is_the_papers_wording_and_then_the_text(name: str) -> None:
    prompt = load_prompt(name).text
    assert prompt.startswith(PAPER[name])
    assert prompt.removeprefix(PAPER[name]).strip() == "{text}"


def test_every_transformation_has_its_prompts_in_the_paper() -> None:
    assert {name for t in EIGHT.values() for name in t.calls} == set(PAPER)


def test_a_text_that_looks_like_a_variable_stays_as_it_is() -> None:
    message = load_prompt("translation").render({"target_language": "Turkish", "text": "{target_language} {text} {x}"})
    assert message.startswith("Translate the following text to Turkish.")
    assert message.endswith("\n\n{target_language} {text} {x}")


def test_the_hash_is_of_the_texts_in_order_alone() -> None:
    two = prompts_of(EIGHT["summarised_expansion"])
    assert prompt_hash(two) != prompt_hash(two[::-1])
    assert prompt_hash(two) == prompt_hash(tuple(prompt.model_copy(update={"source": "x"}) for prompt in two))
