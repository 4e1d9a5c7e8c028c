"""The look that every page here has: one self-contained HTML file, on a phone, in the dark and in print.

Nothing is loaded from anywhere, and there are no scripts. Who puts text into a page escapes it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from env.files import atomic_write

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60656c;--rule:#d9dce0;--page:#fff;--accent:#2456c7;--alarm:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa1a9;--rule:#343a40;--page:#14171a;--accent:#7aa2ff;--alarm:#ff8a80}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1rem 4rem}h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2.5rem 0 .5rem}
p{margin:.3rem 0;color:var(--soft)}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--rule);vertical-align:top;white-space:nowrap}
th{font-weight:600;color:var(--soft);font-size:.85rem;white-space:normal;vertical-align:bottom}td small{color:var(--soft)}
.curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:1rem}figure{margin:0}
figcaption{font-size:.85rem;color:var(--soft)}
svg{width:100%;height:auto;display:block}.axis{fill:none;stroke:var(--rule)}.line{fill:none;stroke:var(--accent);stroke-width:1.6}
svg text{font-size:10px;fill:var(--soft)}.end{text-anchor:end}
.bar{width:9rem;height:.7rem}.track{fill:var(--rule)}.fill{fill:var(--accent);opacity:.75}
.whisker{stroke:var(--ink);stroke-width:2}
pre{overflow-x:auto;font-size:.8rem;border:1px solid var(--rule);padding:.8rem}.alarm{color:var(--alarm)}
@media print{body{font-size:11px}main{max-width:none;padding:0}h2{break-after:avoid}figure,tr{break-inside:avoid}
.scroll{overflow:visible}th,td{white-space:normal;padding-right:.4rem}.bar{display:none}}
"""


def write_page(path: Path, title: str, body: str, style: str = "") -> None:
    """Write a page whole or not at all; `body` is HTML, `style` comes after the common one."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body><main>{body}</main></body></html>\n"
    )
    with atomic_write(path, "wb") as stream:
        # A lone surrogate in somebody's text becomes a question mark.
        stream.write(page.encode(errors="replace"))


def section(title: str, body: str) -> str:
    """A headed part of a page, or nothing when there is nothing in it."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; nothing without rows."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'
