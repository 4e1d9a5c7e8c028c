import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.navigator.actions import Action, ParseError, Verb, parse


@pytest.mark.parametrize(
    ("response", "ids"),
    [
        ("ACTION: READ 7", ("7",)),
        ("action: read [7]", ("7",)),
        ("READ (7) it holds the name", ("7",)),
        ("ACTION: READ 20 :: Projects · Amber Falcon – Bold Finch", ("20",)),
        ("ACTION: READ 20 · Projects · 402", ("20",)),
        ("ACTION: READ 007", ("7",)),
        ("ACTION: READ 7 7", ("7",)),
        ("ACTION: READ 0", ("0",)),
        ("THOUGHT: ACTION: READ 1\n  ACTION: READ 2", ("2",)),
        ("ACTION: READ 1\nACTION: READ 2", ("2",)),
        ("first\nREAD 3\n\n  \n", ("3",)),
    ],
)
def test_read_takes_the_leading_id_of_the_last_action(response, ids):
    assert parse(response) == Action(Verb.READ, ids)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "unknown verb"),
        ("   ", "unknown verb"),
        ("nothing", "unknown verb"),
        ("ACTION: FETCH 3", "unknown verb"),
        ("ACTION: READ", "no id"),
        ("ACTION: READ chunk 4", "no id"),
        ("ACTION: READ -1", "no id"),
        ("ACTıON: READ 1", "unknown verb"),
        ("ACTION: READ ٣", "no id"),
        ("ACTION: READ 3٣", "no id"),
        ("ACTION: READ 5th", "no id"),
        ("ACTION: READ 1 2", "READ takes exactly one chunk id"),
        ("ACTION: READ S1", "READ takes exactly one chunk id"),
        ("ACTION: DROP", "no id"),
        ("ACTION: COMPRESS 3", "empty summary"),
        ("ACTION: COMPRESS 3 ::  ", "empty summary"),
        ("ACTION: COMPRESS :: text", "no id"),
        ("ACTION: ANSWER", "empty answer"),
        ("ACTION: ANSWER  ", "empty answer"),
    ],
)
def test_what_is_no_action_says_why(response, reason):
    with pytest.raises(ParseError, match=f"^{reason}$"):
        parse(response)


def test_compress_takes_ids_in_any_dress_and_everything_after_the_colons():
    assert parse("ACTION: COMPRESS [3], s1 (4) and more :: Amber: Lead = Ada\nsecond line") == Action(
        Verb.COMPRESS, ("3", "S1", "4"), "Amber: Lead = Ada second line"
    )


def test_drop_counts_a_repeated_id_once():
    assert parse("ACTION: DROP S1 s1, 02 2").ids == ("S1", "2")


def test_answer_is_kept_as_written():
    assert parse("ACTION: ANSWER USD 4,885,866.").text == "USD 4,885,866."


def test_a_number_of_any_length_is_an_id():
    assert parse("ACTION: READ " + "9" * 5000).ids == ("9" * 5000,)


WORDS = ["ACTION:", "action:", "READ", "COMPRESS", "drop", "ANSWER", "::", "S1", "s", "0", "07", "9" * 5000, "٣"]
PIECES = [*WORDS, " ", "\n", "\u2028", ",", "[", ")"]


@given(st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=15).map("".join))
def test_parse_raises_nothing_but_its_own_error(response):
    try:
        action = parse(response)
    except ParseError:
        return
    assert len(set(action.ids)) == len(action.ids)
    assert bool(action.ids) is (action.verb is not Verb.ANSWER)
    assert bool(action.text) is (action.verb in (Verb.ANSWER, Verb.COMPRESS))
