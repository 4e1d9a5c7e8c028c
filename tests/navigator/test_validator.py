from dataclasses import replace

import pytest

from env.navigator.instance import to_row, write_rows
from env.navigator.validate import Verdict, validate_file
from env.navigator.validator import CHECKS, Reading, problems, unchecked


def with_chunk(instance, idx, **changes):
    chunks = list(instance.chunks)
    chunks[idx] = replace(chunks[idx], **changes)
    return replace(instance, chunks=chunks)


def test_good_instances_have_no_problems(laptop, deep, public):
    assert [problems(i) for i in [*laptop, *deep, *public]] == [None] * 32


def test_structure_a_chunk_of_another_length(laptop):
    broken = with_chunk(laptop[0], 2, text=laptop[0].chunks[2].text + " more")
    name, found = problems(broken)
    tokens = laptop[0].chunks[2].tokens
    assert (name, found) == ("structure", [f"chunk 2 has {tokens + 1} tokens, {tokens} are recorded"])


def test_evidence_in_another_chunk_at_another_place_or_of_another_value(laptop):
    first, *rest = laptop[0].evidence
    other = (first.chunk_idx + 1) % len(laptop[0].chunks)
    for changes in ({"chunk_idx": other}, {"token_offset": first.token_offset + 1}, {"value": "Nobody Else"}):
        assert problems(replace(laptop[0], evidence=[replace(first, **changes), *rest]))[0] == "evidence"
    for evidence in ([], [replace(first, chunk_idx=999), *rest]):
        assert problems(replace(laptop[0], evidence=evidence))[0] == "structure"


def test_chain_the_text_must_lead_to_the_answer(laptop):
    assert problems(replace(laptop[0], answer="12345678"))[0] == "chain"
    assert problems(replace(laptop[0], question="What is the answer?"))[0] == "chain"


def test_distance_evidence_must_be_apart(laptop):
    far = replace(laptop[0], generator=laptop[0].generator | {"profile": "v1"})
    name, found = problems(far)
    assert name == "distance"
    assert found[0].endswith("at least 1200 are needed")


def test_wrong_path_a_superseded_link_that_leads_to_the_answer(laptop):
    from env.navigator.grammar import read_chunk

    for instance in laptop:
        e = instance.evidence[0]
        value = next(entry for entry in read_chunk(instance.chunks[e.chunk_idx].text) if entry.name == e.entity).fields[e.field]
        if value.old is not None and f"{value.current} (formerly {value.old})" in instance.chunks[e.chunk_idx].text:
            text = instance.chunks[e.chunk_idx].text
            broken = with_chunk(
                instance,
                e.chunk_idx,
                text=text.replace(f"{value.current} (formerly {value.old})", f"{value.current} (formerly {value.current})"),
            )
            assert problems(broken) == (
                "wrong_path",
                [f"hop 1: the superseded {e.field} {value.current!r} leads to the answer"],
            )
            return
    pytest.fail("no instance with a superseded first link")


def test_unique_the_answer_may_stand_nowhere_else(laptop):
    from env.navigator.grammar import read_chunk

    instance = laptop[0]
    for chunk in instance.chunks:
        for entry in read_chunk(chunk.text) if chunk.kind == "register" else []:
            for value in entry.fields.values():
                same = (
                    len(value.current.split("-")) == len(instance.answer.split("-"))
                    and value.current[0].isdigit() == instance.answer[0].isdigit()
                )
                if (
                    same
                    and value.current != instance.answer
                    and value.current.count(",") == instance.answer.count(",")
                    and any(map(str.isdigit, value.current))
                ):
                    if chunk.idx in {e.chunk_idx for e in instance.evidence}:
                        continue
                    broken = with_chunk(instance, chunk.idx, text=chunk.text.replace(value.current, instance.answer))
                    assert problems(broken)[0] == "unique"
                    return
    pytest.fail("no value to replace")


def test_shortcut_the_anchor_may_not_stand_in_the_answer_chunk(laptop):
    instance = laptop[0]
    answer = instance.chunks[instance.evidence[-1].chunk_idx]
    note = answer.text.rindex("Notes: ") + len("Notes: ")
    words = answer.text[note:].split(" ")
    anchor = instance.evidence[0].entity
    broken = with_chunk(instance, answer.idx, text=answer.text[:note] + " ".join([*anchor.split(), *words[2:]]))
    assert problems(broken)[0] == "shortcut"


def test_bridge_may_not_stand_in_the_question(laptop):
    bridge = laptop[0].evidence[0].value
    told = replace(laptop[0], question=f"{laptop[0].question} Ask {bridge}.")
    assert list(CHECKS["bridge"](Reading(told))) == [f"hop 1: the bridge {bridge!r} stands in the question"]
    assert list(CHECKS["bridge"](Reading(laptop[0]))) == []


@pytest.mark.parametrize("changes", [{"min_steps": 3}, {"min_reads": 1}, {"compression_required": False}])
def test_solvable_the_recorded_minimum_must_be_right(laptop, changes):
    name, found = problems(replace(laptop[0], **changes))
    assert name == "solvable"
    assert list(changes)[0] in found[0]


def test_the_checks_run_in_their_written_order():
    assert list(CHECKS) == ["structure", "evidence", "chain", "distance", "wrong_path", "unique", "shortcut", "bridge", "solvable"]


def test_a_file_is_checked_line_by_line(tmp_path, laptop):
    path = tmp_path / "f.jsonl"
    write_rows(path, map(to_row, [laptop[0], replace(laptop[1], min_steps=99)]))
    found = list(validate_file(path))
    assert found[0] == Verdict(where=f"{path}:1", instance_id=laptop[0].id, complaints=(), unchecked=())
    assert (found[1].where, found[1].instance_id) == (f"{path}:2", laptop[1].id)
    assert found[1].complaints[0].startswith("solvable: min_steps is 99")


def foreign(instance, **changes):
    """The instance as a system with another grammar would have written it."""
    chunks = [replace(chunk, text=chunk.text.replace(" — ", " - ")) for chunk in instance.chunks]
    return replace(instance, chunks=chunks, generator={"name": "elsewhere"}, question=f"Tell me. {instance.question}", **changes)


def test_a_foreign_grammar_runs_and_the_checks_that_need_ours_are_named(tmp_path, public):
    path = tmp_path / "f.jsonl"
    write_rows(path, map(to_row, [foreign(public[0]), foreign(public[0], min_steps=99)]))
    good, bad = validate_file(path)
    assert good.unchecked == bad.unchecked == ("evidence", "chain", "wrong_path", "unique")
    assert good.complaints == ()
    assert bad.complaints[0].startswith("solvable: min_steps is 99")


def test_a_file_of_another_system_in_our_grammar_is_checked_in_full(laptop):
    instance = replace(laptop[0], generator={})
    assert unchecked(instance) == ()
    assert problems(replace(instance, answer="PJ-1")) == problems(replace(laptop[0], answer="PJ-1"))


def test_an_instance_of_ours_cannot_pass_by_being_unreadable(laptop):
    instance = replace(foreign(laptop[0]), generator=laptop[0].generator)
    assert unchecked(instance) == ()
    assert problems(instance)[0] == "evidence"
