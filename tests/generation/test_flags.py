from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from generation.flags import clean, find_flags
from plumbline.error_types import FLAGS, LABELS
from plumbline.study import ROOT
from plumbline.study.transformations import EIGHT

PAPER = ROOT.parent / "shared" / "papers" / "hteb.txt"

MAN = "A man is playing a guitar on the stage."  # 9 words
MAN_DE = "Ein Mann spielt auf der Bühne Gitarre."
TEN = "one two three four five six seven eight nine ten"
JAPANESE = "男性が舞台の上でギターを弾いています。"  # 18 characters are 9 words; one piece between white space

# transformation, language that the output should be in, original, cleaned output, the flags that METHOD.md 1 gives
TABLE = [
    ("paraphrasing", "en", MAN, "On the stage somebody plays the guitar.", ""),
    # Identical: case, white space and the Unicode form do not make a difference, anything else does.
    ("paraphrasing", "en", MAN, MAN, "identical"),
    ("style_change", "en", MAN, "a MAN  is playing a guitar\non the stage.", "identical"),
    ("paraphrasing", "fr", "Le cafe\u0301 est ferme\u0301 ce soir.", "Le café est fermé ce soir.", "identical"),
    ("paraphrasing", "en", MAN, MAN.rstrip("."), ""),
    ("paraphrasing", "en", f'"{MAN}"', MAN, "identical"),  # cleaning took the quotes off the output
    ("paraphrasing", "en", "1984", "1984", "identical"),  # no other words for it, and identical all the same
    ("translation", "de", MAN, MAN, "identical wrong_language"),
    # Empty: fewer words than a fifth, too, where so few are an error.
    ("paraphrasing", "en", MAN, "", "empty truncated"),
    ("paraphrasing", "en", MAN, " \n\u200b", "empty truncated"),
    ("summarisation", "en", MAN, "", "empty"),
    ("paraphrasing", "en", "Three short words", "", "empty"),
    # Ellipsis only.
    ("summarisation", "en", MAN, "...", "ellipsis"),
    ("summarisation", "en", MAN, "..", "ellipsis"),
    ("summarisation", "en", MAN, "…", "ellipsis"),
    ("summarisation", "en", MAN, "… ...\n. .", "ellipsis"),
    ("paraphrasing", "en", MAN, "...", "ellipsis truncated"),
    ("summarisation", "en", MAN, ".", ""),
    ("summarisation", "en", MAN, "A man ...", ""),
    # JSON fragment: by its first character.
    ("paraphrasing", "en", MAN, '{"text": "On the stage a man plays the guitar"}', "json_fragment"),
    ("paraphrasing", "en", MAN, "[On the stage a man plays the guitar]", "json_fragment"),
    ("paraphrasing", "en", MAN, "On the stage a man plays {the guitar}", ""),
    # Reasoning leak: A.2's four markers, and what is like them.
    ("paraphrasing", "en", MAN, "Here are my reasoning steps for the stage guitar", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "Hmm. Let me think about this one first.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "I'll rewrite it: a man plays the guitar.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "Sure, I’LL do that for the man on stage.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "Step 1: find the verb. Step 2: replace the verb.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "The user wants me to rephrase this sentence about a man.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "We need to paraphrase the given sentence about a man.", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "Guitar on stage [BEGIN FINAL RESPONSE] A man plays there", "reasoning_leak"),
    # Tokens of a chat's turns and channels.
    ("paraphrasing", "en", MAN, "On stage a man plays<end_of_turn>\n<start_of_turn>user\nThanks", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "<|channel|>final<|message|>On the stage a man plays", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "<|channel>thought\nI paraphrase.<channel|>On stage he plays", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "analysisI need other words.assistantfinalOn stage he plays", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "[INST] On the stage a man plays [/INST]", "json_fragment reasoning_leak"),
    ("paraphrasing", "en", MAN, "On the stage a man plays guitar.</s>", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "<|begin▁of▁sentence|>On the stage a man plays", "reasoning_leak"),
    ("paraphrasing", "en", MAN, "<｜Assistant｜>On the stage a man plays guitar", "reasoning_leak"),
    ("paraphrasing", "en", f"{MAN} <|x|>", "On the stage a man plays guitar <|y|>", ""),
    ("paraphrasing", "en", MAN, "f <| x |> y: on the stage <s>he</s> <b>plays</b> |a| guitar", ""),
    # At the borders of words alone.
    ("paraphrasing", "en", MAN, "On the stage Phi'll and Bill'll play the guitar.", ""),
    ("paraphrasing", "en", MAN, "On the footstep 1: a man plays the guitar.", ""),
    ("paraphrasing", "en", MAN, "He thinks, let me thinking be, and plays guitar.", ""),
    # Not where the original has the marker, or speaks in the first person.
    ("paraphrasing", "en", "Step 1: Boil the water.", "Step 1: Bring the water to the boil.", ""),
    ("paraphrasing", "en", "Now let me think, he said.", "He said: let me think now.", ""),
    ("paraphrasing", "en", "Step 1: Boil the water.", "Let me think. Step 1: Boil some water.", "reasoning_leak"),
    ("paraphrasing", "en", "My plan is to come tomorrow.", "Tomorrow I'll be there.", ""),
    ("paraphrasing", "en", "i will send it tomorrow", "I'll mail it tomorrow", ""),
    ("paraphrasing", "en", "His plan is to come tomorrow.", "Tomorrow I'll be there.", "reasoning_leak"),
    ("paraphrasing", "en", "Where is my new card?", "Let me think. Where did my card go?", "reasoning_leak"),
    # Prefix leak: at the beginning, with its colon.
    ("translation", "de", MAN, f"Translated text: {MAN_DE}", "prefix_leak"),
    ("translation", "de", MAN, f"Translation: {MAN_DE}", "prefix_leak"),
    ("translation", "de", MAN, f"**German translation (formal):** {MAN_DE}", "prefix_leak"),
    ("translation", "de", MAN, f"Übersetzung: {MAN_DE}", "prefix_leak"),
    ("translation", "de", MAN, f"Sure! Here is the text, translated into German:\n{MAN_DE}", "prefix_leak"),
    ("paraphrasing", "en", MAN, "Paraphrased text: Somebody plays guitar on a stage.", "prefix_leak"),
    ("paraphrasing", "en", MAN, "PARAPHRASE : Somebody plays guitar on a stage.", "prefix_leak"),
    ("summarisation", "en", MAN, "Summary: A man plays.", "prefix_leak"),
    ("summarisation", "en", MAN, "Summary of the text: A man plays.", "prefix_leak"),
    ("summarisation", "en", MAN, "A man plays. Summary: guitar.", ""),
    ("summarisation", "en", MAN, "Summary judgement for man.", ""),
    ("summarisation", "en", "Summary: the price of oil fell on Monday.", "Summary: oil fell on Monday.", ""),
    ("translation", "es", "Summary: the price of oil fell.", "Resumen: el precio del petróleo bajó.", ""),
    # Wrong language: the target's for translations, the original's for all others.
    ("cross_translation", "fr", MAN, MAN_DE, "wrong_language"),
    ("cross_translation", "de", MAN, MAN_DE, ""),
    ("paraphrasing", "de", MAN_DE, "Somebody is playing the guitar on the stage.", "wrong_language"),
    ("backtranslation", "en", MAN, "Bir adam sahnede gitar çalıyor.", "wrong_language"),
    ("translation", "ar", MAN, "رجل يعزف على الغيتار على خشبة المسرح.", ""),
    ("translation", "ar", MAN, "一个男人在舞台上弹吉他。", "wrong_language"),
    ("paraphrasing", "ti", "ሰብኣይ ጊታር ይጻወት ኣሎ", "Somebody is playing the guitar.", ""),  # not known: never
    ("paraphrasing", "en", MAN, "Ein Mann.", ""),  # too short to be sure
    ("translation", "de", "https://example.com/the-man-is-here", "https://example.com/the-man-is-here", "identical"),
    # An original that is not in its data set's language has outputs that need not be.
    ("paraphrasing", "en", MAN_DE, "Auf der Bühne spielt ein Mann Gitarre.", ""),
    # Runaway: more than five times, not five times.
    ("paraphrasing", "en", "two words", TEN, ""),  # 10 = 5 * 2
    ("paraphrasing", "en", "two words", f"{TEN} eleven", "runaway"),  # 11 > 5 * 2
    ("summarisation", "en", "two words", f"{TEN} eleven", "runaway summary_too_long"),
    ("expansion", "en", "two words", f"{TEN} eleven", ""),
    ("summarised_expansion", "en", "two words", f"{TEN} eleven", ""),
    # Truncated: less than a fifth, of four words or more.
    ("paraphrasing", "en", TEN, "only two", ""),  # 2 = 20% of 10
    ("paraphrasing", "en", TEN, "one", "truncated"),  # 1 < 20% of 10
    ("expansion", "en", TEN, "one", "truncated"),
    ("summarised_expansion", "en", TEN, "one", "truncated"),
    ("summarisation", "en", TEN, "one", ""),
    ("paraphrasing", "en", "these are four words", "", "empty truncated"),
    ("paraphrasing", "en", "these are three", "", "empty"),
    # Summary too long: by a word, in summarisation alone.
    ("summarisation", "en", "two words", "three words now", "summary_too_long"),
    ("summarisation", "en", "two words", "words, two", ""),
    ("summarised_expansion", "en", "two words", "three words now", ""),
    # Scripts without spaces have words too.
    ("translation", "es", JAPANESE, "Un hombre está tocando la guitarra en el escenario.", ""),  # 9 of 9
    ("translation", "es", JAPANESE, " ".join(["Un hombre está tocando la guitarra en el escenario."] * 6), "runaway"),
    ("paraphrasing", "ja", MAN, JAPANESE, ""),
    # An original without words has no length to be compared with.
    ("paraphrasing", "en", "", MAN, ""),
    ("summarisation", "en", " ", MAN, ""),
    ("paraphrasing", "en", "", "", "identical empty"),
    # Few words, no letters: nothing is wrong with them.
    ("paraphrasing", "en", "???", "?!", ""),
    ("style_change", "en", "12:30", "half past twelve", ""),
    ("paraphrasing", "en", "👍👍 lol", "😂 lol", ""),
]


@pytest.mark.parametrize(("transformation", "language", "original", "output", "flags"), TABLE)
def test_outputs_have_the_papers_flags(
    transformation: str, language: str, original: str, output: str, flags: str
) -> None:
    assert find_flags(original, output, EIGHT[transformation], language=language) == tuple(flags.split())


def test_the_table_has_every_flag_and_every_transformation() -> None:
    assert {flag for *_, flags in TABLE for flag in flags.split()} == set(FLAGS)
    assert {transformation for transformation, *_ in TABLE} == set(EIGHT)


@pytest.mark.data
@pytest.mark.skipif(not PAPER.exists(), reason="the papers are not beside the checkout")
def test_labels_are_the_heads_of_table_5_in_its_order() -> None:
    heads = " ".join(["Model", *(LABELS[flag] for flag in FLAGS), "Total Error Rate"])
    assert heads in PAPER.read_text(encoding="utf-8").splitlines()


TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(
    [MAN, MAN_DE, JAPANESE, "I'll", "Summary:", "[", "...", "\udc80 half a character", "<think>", '"', "Step 1:"]
)
CASES = st.tuples(TEXTS, TEXTS, st.sampled_from(sorted(EIGHT)), st.sampled_from(["en", "de", "ja", "ti", "ar"]))


def flags_of(case: tuple[str, str, str, str]) -> tuple[str, ...]:
    original, output, transformation, language = case
    return find_flags(original, clean(output), EIGHT[transformation], language=language)


@given(CASES)
def test_any_text_has_flags_in_the_papers_order_each_once(case: tuple[str, str, str, str]) -> None:
    flags = flags_of(case)
    assert list(flags) == [flag for flag in FLAGS if flag in flags]


@given(TEXTS, st.sampled_from(sorted(EIGHT)))
def test_an_unchanged_text_is_identical_and_nothing_else_but_what_its_own_form_says(text: str, name: str) -> None:
    flags = find_flags(text, text, EIGHT[name], language="en")
    assert flags[0] == "identical"
    assert not {"runaway", "truncated", "summary_too_long", "reasoning_leak", "prefix_leak"} & set(flags)
