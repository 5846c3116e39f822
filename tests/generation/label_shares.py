"""What a model's probabilities of labels are by transformers alone, to hold vLLM's against.

    .venv-vllm/bin/python -m tests.generation.label_shares MODEL MESSAGES

MESSAGES is a file with a list of messages as JSON; on standard output comes a list of the probabilities of 1 to 5.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

LABELS = ("1", "2", "3", "4", "5")


def shares(folder: str, messages: list[str]) -> list[list[float]]:
    """The softmax of the logits after each message, of the tokens of the labels."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = tokenizer.convert_tokens_to_ids(list(LABELS))
    found = []
    for message in messages:
        chat = [{"role": "user", "content": message}]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        given = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(given).logits[0, -1]
        found.append(torch.softmax(logits, 0)[tokens].tolist())
    return found


if __name__ == "__main__":
    print(json.dumps(shares(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()))))
