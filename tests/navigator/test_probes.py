from dataclasses import replace

import pytest

from env.navigator.probes import Degenerate, Probe, degenerate, probe
from env.navigator.prompt import Item
from env.navigator.settings import Rules
from env.navigator.traces import trace


def probed(instance, *actions):
    return probe(trace(instance, [(f"ACTION: {action}", False) for action in actions]))


def test_a_straight_episode(village):
    assert probed(village, "READ 1", "COMPRESS 1 :: Ada: Friend = Bo", "READ 5", "READ 3", "ANSWER 4,210") == Probe(
        correct=True,
        reads_nothing=False,
        correct_unread=None,
        answer_fifth=1,
        facts_kept=1.0,
        degenerate=0.0,
        degenerate_kinds=(),
        summaries=1,
        rereads=0,
        reread_compressed=False,
        reads_over_min=0,
        captured_by=None,
        captured=None,
    )


@pytest.mark.parametrize(("answer", "correct"), [("4,210", True), ("1", False)])
def test_an_answer_without_reading(village, answer, correct):
    found = probed(village, f"ANSWER {answer}")
    assert (found.reads_nothing, found.correct_unread, found.reads_over_min) == (True, correct, -3)


def test_a_read_that_was_refused_is_no_read(village):
    assert probed(village, "READ 99", "ANSWER 1").reads_nothing


def test_the_answer_stands_in_a_fifth_of_the_document_by_chunks(village):
    last = village.evidence[-1]
    fifths = [probed(replace(village, evidence=[replace(last, chunk_idx=chunk)]), "ANSWER 1").answer_fifth for chunk in range(8)]
    assert fifths == [0, 0, 1, 1, 2, 3, 3, 4]
    assert probed(replace(village, evidence=[]), "ANSWER 1").answer_fifth is None


def test_every_fact_counts_when_its_own_chunk_is_compressed(village):
    kept, lost = "COMPRESS 1 :: Ada: Friend = Bo", "COMPRESS 1 :: Ada: Friend = Bob"
    answer = "COMPRESS 3 S1 :: Pay 4,210, no Bo"
    assert probed(village, "READ 1", kept).facts_kept == 1.0
    assert probed(village, "READ 1", lost).facts_kept == 0.0
    assert probed(village, "READ 1", lost, "READ 3", answer).facts_kept == 0.5
    assert probed(village, "READ 0", "COMPRESS 0 :: Abe").facts_kept is None


def test_reads_again_and_what_they_were_of(village):
    dropped = probed(village, "READ 1", "DROP 1", "READ 1", "DROP 1", "READ 1")
    assert (dropped.rereads, dropped.reread_compressed, dropped.reads_over_min) == (2, False, 0)
    compressed = probed(village, "READ 1", "COMPRESS 1 :: Ada", "READ 5", "READ 1", "READ 2")
    assert (compressed.rereads, compressed.reread_compressed, compressed.reads_over_min) == (1, True, 1)


@pytest.mark.parametrize(
    ("answer", "captured_by", "captured"),
    [("4180", "superseded_link", True), ("4,280", "near_miss_entity", True), ("5", None, False), ("4,210", None, None)],
)
def test_a_wrong_answer_may_be_a_known_distractor(village, answer, captured_by, captured):
    found = probed(village, "READ 1", f"ANSWER {answer}")
    assert (found.captured_by, found.captured) == (captured_by, captured)


def test_no_answer_is_no_wrong_answer(village):
    assert probed(village, "READ 1").captured is None


ENTRY = "Ada Lind — Lead: Bo. Notes: all of it was filed with the keys and seen by the board.\nCy — Lead: Di."


@pytest.mark.parametrize(
    ("summary", "tokens", "kind"),
    [
        ("Ada Lind: Lead = Bo", 6, None),
        ("nothing of use here", 4, Degenerate.EMPTY),
        ("filed with the keys", 4, Degenerate.EMPTY),
        ("bo", 1, None),
        ("Bo Bo Bo Bo Bo Bo Bo", 7, Degenerate.REPEATED),
        ("Bo Bo Bo Bo Bo", 5, None),
        ("Ada Lind — Lead: Bo. Notes:  all of it was filed", 18, Degenerate.COPIED),
        ("Ada Lind — Lead: Bo. Notes:  all of it was filed", 17, None),
        ("ada lind ¦ Lead ¦ Bo ¦ Notes ¦ all of it was filed", 18, Degenerate.COPIED),
        ("something else Ada Lind — Lead: Bo. Notes", 18, Degenerate.COPIED),
        ("Ada Lind — Lead: Bo. Notes: all was filed", 18, None),
        ("da Lind — Lead: Bo. Notes: all of it was filed", 18, None),
    ],
)
def test_what_is_no_summary(summary, tokens, kind):
    assert degenerate(Item(text=summary, tokens=tokens), ["something else", ENTRY], Rules(summary_cap=20)) is kind


def test_kinds_of_degenerate_summaries_are_listed_in_order(village):
    found = probed(village, "READ 1", "COMPRESS 1 :: nothing", "READ 5", "COMPRESS 5 :: Bo Bo Bo Bo Bo Bo", "READ 3", "COMPRESS 3 :: Amy")
    assert found.degenerate_kinds == (Degenerate.EMPTY, Degenerate.REPEATED)
    assert (found.degenerate, found.summaries) == (pytest.approx(2 / 3), 3)
