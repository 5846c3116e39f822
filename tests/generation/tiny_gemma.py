"""A tiny Gemma-3 with random weights, made on the spot: the real architecture, tokenizer and chat template in 1 MB.

    .venv-vllm/bin/python -m tests.generation.tiny_gemma FOLDER [digits]

What it says is nonsense, but it behaves like a chat model: its answers are words, differ by prompt, and most of them
end by themselves, because some of the words count as an end.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedTokenizerFast
from transformers.utils import logging

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
CONTEXT = 1024  # tokens
SPECIAL = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>")
PAD, EOS, BOS, _, END_OF_TURN = range(len(SPECIAL))
# Every eighth word ends an answer. With these numbers answers have about ten words, few are empty or have no end, and
# most differ by text.
SEED, ENDING = 5, slice(2, None, 8)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<start_of_turn>' + message['role'] + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def make(folder: Path, *, ending: bool = True, digits: bool = False) -> None:
    """Write model and tokenizer, the same ones each time; without `ending` its answers go on until they are cut off.

    With `digits` it mostly says 1 to 5, as judges do, and its window holds a rubric's prompt, as Gemma-3-27B's does.
    """
    logging.disable_progress_bar()
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(folder)
    _model(tokenizer, ending=ending, digits=digits).bfloat16().save_pretrained(folder)


def _tokenizer() -> PreTrainedTokenizerFast:
    """Byte pairs, as many as the prompts' texts make words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train([str(path) for path in sorted(PROMPTS.glob("*.yaml"))], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=SPECIAL[PAD], eos_token=SPECIAL[EOS], bos_token=SPECIAL[BOS]
    )
    fast.chat_template = TEMPLATE
    return fast


def _model(tokenizer: PreTrainedTokenizerFast, *, ending: bool, digits: bool) -> Gemma3ForCausalLM:
    """Random weights, with an output layer of its own: tied to the input, it would repeat its last token for ever."""
    words = sorted(place for piece, place in tokenizer.get_vocab().items() if re.fullmatch("Ġ[a-z]{2,}", piece))
    config = Gemma3TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=CONTEXT,
        sliding_window=CONTEXT if digits else 512,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=[EOS, END_OF_TURN, *(words[ENDING] if ending else [])],
    )
    generator = torch.Generator().manual_seed(SEED)
    model = Gemma3ForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                spread = {"embed_tokens": 0.1, "lm_head": 0.3}.get(name.split(".")[-2], 0.5)
                weight.normal_(0, spread, generator=generator)
        for layer in model.model.layers:
            layer.post_attention_layernorm.weight.fill_(1)  # doubles what the text weighs against the last word
        silent = torch.ones(config.vocab_size, dtype=torch.bool)
        silent[words] = False
        points = [place for piece, place in tokenizer.get_vocab().items() if digits and piece in set("12345")]
        silent[points] = False
        model.lm_head.weight[silent] = 0
        if digits:  # all embeddings share a component, which the points' weights answer to
            model.model.embed_tokens.weight[:, 0] = 1
            model.lm_head.weight[points, 0] += 6
    return model


if __name__ == "__main__":
    make(Path(sys.argv[1]), digits="digits" in sys.argv[2:])
