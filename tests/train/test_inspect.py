import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from env.navigator.generate import generate_file
from env.navigator.instance import read_instances, to_row, write_rows
from env.navigator.map import render_map
from env.navigator.settings import get_profile
from train.cli import main
from train.highlight import Note, marked
from train.svg import document_strip, histogram

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Every tag of a page, and its text by section; complains of tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.marks, self.ids, self.targets = [], [], "", [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.targets += [attributes["href"]] if "href" in attributes else []
        if tag == "mark":
            self.marks.append([attributes["class"], ""])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if "mark" in self.open:
            self.marks[-1][1] += data


def page_of(tmp_path, instance, *arguments):
    write_rows(tmp_path / "f.jsonl", [to_row(instance)])
    assert main(["inspect", str(tmp_path / "f.jsonl"), *arguments, "--out", str(tmp_path / "p.html")]) == 0
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    return Page(text), text


def test_a_page_shows_question_chain_map_and_every_chunk(village, tmp_path):
    page, _ = page_of(tmp_path, village, "--id", "village")
    assert village.question in page.text
    assert render_map(village) in page.text
    assert page.text.count("Working context") == 1
    for chunk in village.chunks:
        assert chunk.text in page.text
    assert [name for name in page.ids if name.startswith("c")] == [f"c{n}" for n in range(8)]
    assert {target.removeprefix("#") for target in page.targets} <= set(page.ids)


def test_chunks_with_something_marked_are_open(village, tmp_path):
    page, _ = page_of(tmp_path, village, "--id", "village")
    opened = [a["id"] for tag, a in page.tags if tag == "details" and "open" in a]
    assert opened == ["c1", "c3", "c5"]


def test_the_shortest_solution_says_what_is_held_and_used(laptop_file, tmp_path):
    instance = next(read_instances(laptop_file))
    page, _ = page_of(tmp_path, instance, "--id", instance.id)
    first, second = (instance.chunks[e.chunk_idx] for e in instance.evidence)
    assert f"ACTION: READ {first.idx}" in page.text
    assert f"{first.idx} ({first.tokens}){first.tokens} of 172" in page.text
    assert f"S1 (7), {second.idx} ({second.tokens}){7 + second.tokens} of 172" in page.text
    assert page.text.count("ACTION: ANSWER") == 1 + page.text.count("DROP ids or ACTION: ANSWER")
    assert "answered: reward 0.950" in page.text


def test_a_chain_whose_chunks_list_no_entries_has_no_solution(village, tmp_path):
    chunks = [replace(chunk, entity_names=[]) for chunk in village.chunks]
    page, _ = page_of(tmp_path, replace(village, chunks=chunks), "--id", "village")
    assert "Shortest solution" not in page.text
    assert "Chain" in page.text


def test_every_text_is_text(village, tmp_path):
    bad = "<script>alert(1)</script>&amp;"
    chunks = [replace(chunk, text=f"{chunk.text} {bad}", header=bad, section=bad) for chunk in village.chunks]
    evidence = [replace(e, entity_type=bad, field=bad) for e in village.evidence]
    distractors = [replace(d, kind=bad, wrong_answer=bad) for d in village.distractors]
    instance = replace(village, id=bad, question=bad, answer=bad, split=bad, chunks=chunks, evidence=evidence, distractors=distractors)
    for arguments in (["--id", bad], []):
        page, text = page_of(tmp_path, instance, *arguments)
        assert bad in page.text
        assert "<script" not in text
        assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object"})


def test_nothing_is_loaded_from_elsewhere(village, tmp_path):
    for arguments in (["--id", "village"], []):
        page, text = page_of(tmp_path, village, *arguments)
        assert not any("src" in attributes for _, attributes in page.tags)
        assert "url(" not in text
        assert "@import" not in text
        assert "prefers-color-scheme:dark" in text
        assert all(target.startswith("#") for target in page.targets)


def test_a_lone_surrogate_does_not_stop_the_page(village, tmp_path):
    page, _ = page_of(tmp_path, replace(village, question="odd \ud800?"), "--id", "village")
    assert "odd ??" in page.text


def test_the_nearest_ids_are_named(village, tmp_path, capsys):
    write_rows(tmp_path / "f.jsonl", [to_row(village) | {"id": name} for name in ("x", "train-000021", "dev-000022", "dev-000021")])
    assert main(["inspect", str(tmp_path / "f.jsonl"), "--id", "dev-00021", "--out", str(tmp_path / "p.html")]) == 2
    reason = f"{tmp_path}/f.jsonl: no instance has the id 'dev-00021'; the nearest are dev-000021, dev-000022, train-000021"
    assert capsys.readouterr() == ("", f"navigator: error: {reason}\n")
    assert not (tmp_path / "p.html").exists()


EVIDENCE = Note(kind="evidence", hop=1, entity="Bo Roe", field="Lead", value="Cy")
OLD = Note(kind="superseded_link", hop=1, entity="Bo Roe", field=None, value="Di")


def spans(text, *notes):
    return [tuple(mark) for mark in Page(marked(text, notes)).marks]


def test_entity_and_value_are_marked_in_the_entrys_own_line():
    text = "List · Bo Roe – Bo Roe Jr\nBo Roe Jr — Lead: Cy.\nBo Roe — Aide: Cy. Lead: Cy (formerly Di). Cyan, Di."
    html = marked(text, [EVIDENCE, OLD])
    assert Page(html).text == text
    assert html.partition("\nBo Roe Jr")[0] == "List · Bo Roe – Bo Roe Jr"
    assert html.split("\n")[1] == "Bo Roe Jr — Lead: Cy."
    assert html.split("\n")[2] == (
        '<mark class="evidence" title="evidence, hop 1">Bo Roe</mark> — Aide: Cy. Lead: '
        '<mark class="evidence" title="evidence, hop 1">Cy</mark> (formerly '
        '<mark class="superseded_link" title="superseded link, hop 1">Di</mark>). Cyan, Di.'
    )


def test_in_another_grammar_every_line_that_names_the_entity_is_marked():
    assert spans("Mr Bo Roe (Cyan) reports to Cy.", EVIDENCE) == [("evidence", "Bo Roe"), ("evidence", "Cy")]
    assert spans("Bo Roe's lead: Cy", EVIDENCE) == [("evidence", "Bo Roe"), ("evidence", "Cy")]


def test_what_is_not_there_is_not_marked():
    assert spans("Bo Roebuck — Lead: Cy.", EVIDENCE) == []
    assert spans("Bo Roe — Lead: Cyan.", replace(EVIDENCE, kind="of another system")) == [("other", "Bo Roe")]


@pytest.fixture
def laptop_file(tmp_path):
    generate_file(get_profile("laptop"), "dev", 0, 4, tmp_path / "dev.jsonl")
    return tmp_path / "dev.jsonl"


def test_a_file_is_summed_up_with_what_generate_reported(laptop_file, tmp_path, capsys):
    assert main(["inspect", str(laptop_file), "--out", str(tmp_path / "p.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/p.html: 4 instances\n"
    page = Page((tmp_path / "p.html").read_text())
    report = json.loads((tmp_path / "dev.report.json").read_text())
    assert f"{report['rejected']} of {report['attempts']} attempts ({report['rejection_rate']:.1%}) failed validation" in page.text
    assert "passed over 4 instances" in page.text
    assert "dev22dev32" in page.text
    for instance in read_instances(laptop_file):
        assert f"{instance.id}{instance.question}{instance.answer}{instance.n_hops}{instance.min_steps}" in page.text
    assert sum(tag == "figure" for tag, _ in page.tags) == 5
    assert page.targets == []


def test_a_file_from_elsewhere_has_no_report(village, tmp_path):
    page, _ = page_of(tmp_path, village)
    assert "Rejections" not in page.text
    assert "Confound audit" not in page.text
    assert "1 instances; 0 need compression" in page.text


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_report_that_is_none_is_an_error(village, tmp_path, text, capsys):
    write_rows(tmp_path / "f.jsonl", [to_row(village)])
    (tmp_path / "f.report.json").write_text(text)
    assert main(["inspect", str(tmp_path / "f.jsonl"), "--out", str(tmp_path / "p.html")]) == 2
    assert capsys.readouterr().err.startswith(f"navigator: error: {tmp_path}/f.report.json: ")


def test_an_empty_file_has_no_page(tmp_path, capsys):
    (tmp_path / "f.jsonl").touch()
    assert main(["inspect", str(tmp_path / "f.jsonl"), "--out", str(tmp_path / "p.html")]) == 2
    assert capsys.readouterr().err == f"navigator: error: {tmp_path}/f.jsonl: no instance in it\n"


def bars(chart):
    return [(a["x"], a["width"], a["height"]) for tag, a in Page(chart).tags if tag == "rect"]


def test_a_histogram_has_a_bar_for_every_value_that_comes():
    assert bars(histogram("t", [3, 3, 5])) == [("46.0", "86.7", "120.0"), ("223.3", "86.7", "60.0")]
    assert histogram("t", []) == ""


def test_many_values_share_bars():
    chart = histogram("t", list(range(100)), most_bars=10)
    assert len(bars(chart)) == 10
    assert "90 to 99: 10" in Page(chart).text


def test_the_strip_of_a_document_numbers_the_hops():
    chart = document_strip([(100, "A", True), (100, "B", True), (200, "Log", False)], [1, 0])
    looks = [(a["class"], a["x"], a["width"]) for tag, a in Page(chart).tags if tag == "rect"]
    assert looks == [("hit", "0.0", "249.0"), ("hit", "250.0", "249.0"), ("noise", "500.0", "499.0")]
    assert 'd="M375.0 56C375.0 6 125.0 6 125.0 56"' in chart
    assert '<text class="hop" x="375.0" y="77">1</text>' in chart
