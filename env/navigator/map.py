"""The document map: one line per register chunk, runs of noise collapsed to one line."""

from itertools import groupby

from env.navigator.instance import Instance


def render_map(instance: Instance) -> str:
    """The map of a document, in document order.

    A register chunk is `id · section · first entry – last entry · tokens`; consecutive noise chunks of one
    section are `first id – last id · section · mean tokens each`. A register chunk of a foreign file may list no
    entries: its header stands in for section and range.
    """
    lines = []
    for (kind, section), group in groupby(instance.chunks, key=lambda chunk: (chunk.kind, chunk.section)):
        chunks = list(group)
        if kind == "register":
            for c in chunks:
                shown = f"{section} · {c.entity_names[0]} – {c.entity_names[-1]}" if c.entity_names else c.header
                lines.append(f"{c.idx} · {shown} · {c.tokens}")
        else:
            mean = round(sum(c.tokens for c in chunks) / len(chunks))
            lines.append(f"{chunks[0].idx} – {chunks[-1].idx} · {section} · {mean} each")
    return "\n".join(lines)
