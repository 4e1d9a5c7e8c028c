"""One instance as a page: question, chain, shortest solution, the map as the policy sees it, and the document.

Evidence and distractors are marked where they stand, in a colour and an underline for each kind, so that a person
can answer the question by eye and see every trap beside the path.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from html import escape
from pathlib import Path

from env.errors import InputError
from env.navigator.episode import NavigatorEpisode
from env.navigator.instance import Chunk, Instance, from_row, read_rows
from env.navigator.map import render_map
from env.navigator.policies import Oracle
from env.navigator.settings import rules_from
from env.navigator.traces import check_evidence
from train.highlight import KINDS, Note, mark, marked, notes_of
from train.page import section, table, write_page
from train.svg import document_strip, meter

STYLE = """
:root{--evidence:#cdeed5;--superseded_link:#ffe3b0;--superseded_value:#ead9ff;--near_miss_entity:#ffd4da;--near_miss_value:#d3e5ff;
--other:#e3e5e8;--block:#f4f5f7}
@media(prefers-color-scheme:dark){:root{--evidence:#1d5130;--superseded_link:#5d4310;--superseded_value:#472d6b;
--near_miss_entity:#65252f;--near_miss_value:#1f3f6b;--other:#3b4148;--block:#1d2125}}
mark{color:var(--ink);background:var(--other);padding:.05em .2em;border-radius:.2em;border-bottom:2px dotted;
-webkit-print-color-adjust:exact;print-color-adjust:exact}
mark.evidence{background:var(--evidence);border-bottom-style:solid;font-weight:600}
mark.superseded_link{background:var(--superseded_link)}mark.superseded_value{background:var(--superseded_value)}
mark.near_miss_entity{background:var(--near_miss_entity);border-bottom-style:dashed}
mark.near_miss_value{background:var(--near_miss_value);border-bottom-style:dashed}
.question{font-size:1.25rem;line-height:1.4;color:var(--ink);margin:1.2rem 0 .3rem;max-width:45rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.6rem 1rem;margin:1.2rem 0 0}
.facts dt{font-size:.8rem;color:var(--soft)}.facts dd{margin:0;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.chain{list-style:none;margin:0;padding:0}.chain>li{border-left:3px solid var(--evidence);padding:.1rem 0 1rem 1rem;margin:0}
.chain ul{margin:.4rem 0 0;padding:0;list-style:none;font-size:.9rem}.chain li li{margin:.25rem 0;color:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:.4rem .8rem;margin:.6rem 0}a{color:var(--accent);white-space:nowrap}
.steps td:nth-child(2){white-space:normal;min-width:16rem}.steps small{display:block}
pre.map a{text-decoration:none;color:inherit}pre.prompt{white-space:pre-wrap}summary{cursor:pointer;padding:.35rem 0}
.chunk{border-bottom:1px solid var(--rule);scroll-margin-top:1rem}.chunk summary{display:flex;flex-wrap:wrap;gap:.1rem .8rem}
.chunk summary small{color:var(--soft)}.chunk summary::before{content:"▸";color:var(--soft)}.chunk[open] summary::before{content:"▾"}
.text{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--block);padding:.8rem;margin:0 0 .8rem;border-radius:.3rem;
font-size:.95rem}
.strip{min-width:40rem}.strip .register{fill:var(--rule)}.strip .register.odd{fill:var(--soft);opacity:.35}
.strip .noise{fill:var(--block)}
.strip .hit{fill:var(--accent)}.strip .arc{fill:none;stroke:var(--accent);stroke-width:1.5}.strip text{text-anchor:middle;font-size:11px}
.strip .hop{fill:var(--page);font-weight:600}
@media print{.text{background:none;border:1px solid var(--rule)}.chunk:not([open]){display:none}.strip{min-width:0}
pre{white-space:pre-wrap}}
"""


def find_instance(path: Path, name: str) -> Instance:
    """The instance of that id in a file. InputError that names the nearest ids."""
    ids: list[str] = []
    for where, row in read_rows(path):
        if isinstance(row, dict) and row.get("id") == name:
            instance = from_row(row, where)
            check_evidence(instance, where)
            return instance
        ids.append(str(row.get("id")) if isinstance(row, dict) else "")
    near = ", ".join(get_close_matches(name, ids, n=3, cutoff=0.0)) or "none: the file is empty"
    raise InputError(f"{path}: no instance has the id {name!r}; the nearest are {near}")


def write_instance_page(instance: Instance, out: Path) -> None:
    """Write the page of one instance."""
    notes = notes_of(instance)
    parts = [
        f"<h1>{escape(instance.id)}</h1>",
        f'<p class="question">{escape(instance.question)}</p>',
        f"<p>Answer {mark(instance.answer, 'evidence', 'the answer')}</p>",
        _facts(instance),
        section("Chain", _chain(instance)),
        section("Document", _strip(instance)),
        section("Shortest solution", _solution(instance)),
        section("Map, as the policy sees it", _map(instance, notes)),
        section("Chunks", _legend(instance) + "".join(_chunk(chunk, notes.get(chunk.idx, [])) for chunk in instance.chunks)),
    ]
    write_page(out, instance.id, "".join(parts), STYLE)


def _facts(instance: Instance) -> str:
    rules = rules_from(instance.env)
    facts = {
        "split": instance.split,
        "hops": instance.n_hops,
        "fewest steps": f"{instance.min_steps} of {rules.budget(instance.n_hops)}",
        "fewest reads": instance.min_reads,
        "compression": "required" if instance.compression_required else "not required",
        "document": f"{instance.doc_tokens:,} tokens",
        "chunks": len(instance.chunks),
        "ceiling": f"{rules.ceiling:,} tokens",
        "longest summary": f"{rules.summary_cap} tokens",
        "candidate answers": len(instance.candidate_answers),
    }
    return '<dl class="facts">' + "".join(f"<div><dt>{k}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts.items()) + "</dl>"


def _link(chunk: int) -> str:
    return f'<a href="#c{chunk}">chunk {chunk}</a>'


def _chain(instance: Instance) -> str:
    """Hop by hop, the traps beside the path under each."""
    hops = []
    for e in instance.evidence:
        traps = "".join(
            f"<li>{mark(d.kind.replace('_', ' '), d.kind, d.kind)} {escape(d.entity)}: {escape(d.value)}"
            f"{f', leads to {escape(d.wrong_answer)}' if d.wrong_answer not in (None, d.value) else ''} · {_link(d.chunk_idx)}</li>"
            for d in instance.distractors
            if d.hop == e.hop
        )
        hops.append(
            f"<li><b>{e.hop}</b> {escape(e.entity_type)} {mark(e.entity, 'evidence', 'entity')} · {escape(e.field)} "
            f"{mark(e.value, 'evidence', 'value')} · {_link(e.chunk_idx)}{f'<ul>{traps}</ul>' if traps else ''}</li>"
        )
    return f'<ol class="chain">{"".join(hops)}</ol>' if hops else ""


def _strip(instance: Instance) -> str:
    blocks = [(chunk.tokens, chunk.section, chunk.kind == "register") for chunk in instance.chunks]
    return f'<div class="scroll">{document_strip(blocks, [e.chunk_idx for e in instance.evidence])}</div>'


def _solution(instance: Instance) -> str:
    """The oracle's steps; left out where it cannot speak: without a chain, or where a chunk of it lists no entries."""
    if not instance.evidence or not all(instance.chunks[e.chunk_idx].entity_names for e in instance.evidence):
        return ""
    episode, oracle, rows = NavigatorEpisode(instance), Oracle(0), []
    while episode.ending is None:
        thought, _, action = oracle(episode).rpartition("\n")
        episode.step(action)
        held = ", ".join(f"{escape(name)} ({item.tokens})" for name, item in episode.held.items())
        rows.append(
            [
                str(episode.steps_used),
                f"{escape(action)}<small>{escape(thought)}</small>",
                held or "nothing",
                f"{meter(episode.used, episode.rules.ceiling)}{episode.used} of {episode.rules.ceiling}",
            ]
        )
    html = table(["step", "action", "held after it (tokens)", "tokens used"], rows)
    return f'<div class="steps">{html}</div><p>{episode.ending.value.replace("_", " ")}: reward {episode.reward:.3f}</p>'


def _map(instance: Instance, notes: dict[int, list[Note]]) -> str:
    """Every line leads to its chunk; the evidence's are marked. Below it the whole prompt of the first step."""
    evidence = {e.chunk_idx for e in instance.evidence}
    lines = []
    for line in render_map(instance).split("\n"):
        number = re.match(r"(\d+) · ", line)
        if number is None:
            lines.append(escape(line))
            continue
        chunk = int(number[1])
        shown = mark(line, "evidence", "evidence") if chunk in evidence else escape(line)
        lines.append(f'<a href="#c{chunk}">{shown}</a>' if chunk in notes else shown)
    prompt = "\n\n".join(message["content"] for message in NavigatorEpisode(instance).observe().messages)
    whole = f'<details><summary>The whole prompt of the first step</summary><pre class="prompt">{escape(prompt)}</pre></details>'
    return f'<pre class="map">{chr(10).join(lines)}</pre>{whole}'


def _legend(instance: Instance) -> str:
    kinds = dict.fromkeys([*KINDS, *(d.kind for d in instance.distractors)])
    return '<p class="legend">' + "".join(mark(kind.replace("_", " "), kind, kind) for kind in kinds) + "</p>"


def _chunk(chunk: Chunk, notes: Sequence[Note]) -> str:
    """Open when something in it is marked."""
    badges = " ".join(dict.fromkeys(mark(_badge(note), note.kind, note.kind) for note in notes))
    return (
        f'<details class="chunk" id="c{chunk.idx}"{" open" if notes else ""}><summary><b>{chunk.idx}</b> {escape(chunk.header)} '
        f"<small>{escape(chunk.kind)}, {chunk.tokens} tokens</small> {badges}</summary>"
        f'<div class="text">{marked(chunk.text, notes)}</div></details>'
    )


def _badge(note: Note) -> str:
    return f"hop {note.hop}" if note.kind == "evidence" else note.kind.replace("_", " ")
