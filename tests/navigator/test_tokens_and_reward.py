import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.navigator.reward import is_correct, normal, terminal_reward
from env.navigator.settings import Rules
from env.navigator.tokens import count_tokens, cut_tokens, has_words, overlap, words_of
from env.protocol import Ending


def test_a_token_is_a_run_of_word_characters_or_one_mark():
    assert count_tokens("USD 4,885,866 (PJ-4471) naïve 日本\n—") == 14


@given(st.text(), st.integers(0, 12))
def test_cutting_keeps_at_most_the_limit_and_a_prefix(text, limit):
    cut = cut_tokens(text, limit)
    assert count_tokens(cut) == min(limit, count_tokens(text))
    assert text.startswith(cut)


def test_words_stand_as_a_whole():
    assert has_words("Lead = R1.", "R1")
    assert not has_words("R12 xR1 R1x", "R1")
    assert has_words("R12 R1", "R1")


@pytest.mark.parametrize(
    ("prediction", "truth", "right"),
    [
        ("4,885,866", "4,885,866", True),
        ("USD 4,885,866", "4,885,866", True),
        ("the value is 4885866.", "4,885,866", True),
        ("4,885,866 or 4,885,870", "4,885,866", False),
        ("4,885,866 4,885,866", "4,885,866", False),
        ("4,885,86", "4,885,866", False),
        ("pj 4471", "PJ-4471", True),
        ("PJ-4471\u200b", "PJ-4471", True),
        ("USD PJ-4471", "PJ-4471", False),
        ("4471", "PJ-4471", False),
        ("٤٨", "48", False),
        ("", "48", False),
        ("—", "日本", False),
    ],
)
def test_right_answers(prediction, truth, right):
    assert is_correct(prediction, truth) is right


@pytest.mark.parametrize(
    ("ending", "answer", "steps", "reward"),
    [
        (Ending.ANSWERED, "48", 4, 0.95),
        (Ending.ANSWERED, "48", 8, 0.9),
        (Ending.ANSWERED, "48", 400, 0.5),
        (Ending.ANSWERED, "49", 4, 0.0),
        (Ending.ANSWERED, "unknown", 4, 0.0),
        (Ending.CEILING_EXCEEDED, None, 4, -0.5),
        (Ending.BUDGET_EXHAUSTED, None, 14, -0.5),
    ],
)
def test_terminal_reward(ending, answer, steps, reward):
    assert terminal_reward(ending, answer=answer, truth="48", steps_used=steps, min_steps=4, rules=Rules()) == pytest.approx(reward)


def test_abstention_pays_only_where_it_is_switched_on():
    rules = Rules(abstain_reward=0.1)
    assert terminal_reward(Ending.ANSWERED, answer="Unknown.", truth="48", steps_used=4, min_steps=4, rules=rules) == 0.1


@given(st.text(alphabet=st.one_of(st.sampled_from("ab_1 .,–—·\n\t\x1c\x85é中?\u200b"), st.characters())))
def test_every_text_is_counted_as_by_the_expression_that_defines_tokens(text):
    assert count_tokens(text) == len(re.findall(r"\w+|[^\w\s]", text))


@given(st.text())
def test_a_value_is_compared_by_its_lower_case_letters_and_digits(text):
    assert normal(text) == re.sub(r"[^a-z0-9]", "", text.lower())


@given(st.text(alphabet="ab_1 .—é\n"), st.text(alphabet="aAb_1 .—éÉ\n"))
def test_shared_words_are_counted_as_by_reading_both_texts(question, text):
    words = set(re.findall(r"\w+", question.lower()))
    assert words_of(question) == words
    assert overlap(words, text) == len(words.intersection(re.findall(r"\w+", text.lower())))
