"""Line charts as inline SVG, without a library: a report is one file that opens anywhere."""

from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 320, 150, 46, 22

Point = tuple[float, float]


def line_chart(title: str, points: Sequence[Point]) -> str:
    """One series over its steps; empty for fewer than two points."""
    if len(points) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    if high == low:
        low, high = low - 0.5, high + 0.5

    def place(point: Point) -> str:
        x = _LEFT + (point[0] - xs[0]) / (xs[-1] - xs[0]) * (_WIDTH - _LEFT - 8)
        y = 8 + (high - point[1]) / (high - low) * (_HEIGHT - _BOTTOM - 8)
        return f"{x:.1f},{y:.1f}"

    base = _HEIGHT - _BOTTOM
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<path class="axis" d="M{_LEFT} 8V{base}H{_WIDTH - 8}"/>'
        f'<text x="{_LEFT - 6}" y="14" class="end">{high:.3g}</text><text x="{_LEFT - 6}" y="{base}" class="end">{low:.3g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{xs[0]:g}</text><text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" class="end">{xs[-1]:g}</text>'
        f'<polyline class="line" points="{" ".join(place(point) for point in points)}"/></svg></figure>'
    )


def interval_bar(value: float, low: float, high: float) -> str:
    """A share between 0 and 1 with its interval."""
    return (
        f'<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="12"/>'
        f'<rect class="fill" width="{100 * value:.2f}" height="12"/>'
        f'<path class="whisker" d="M{100 * low:.2f} 6H{100 * high:.2f}"/></svg>'
    )


def histogram(title: str, values: Sequence[int], most_bars: int = 24) -> str:
    """How often each value comes, in bars of equal width; empty without values."""
    if not values:
        return ""
    low, high = min(values), max(values)
    width = -(-(high - low + 1) // most_bars)
    counts = [0] * ((high - low) // width + 1)
    for value in values:
        counts[(value - low) // width] += 1
    base, step = _HEIGHT - _BOTTOM, (_WIDTH - _LEFT - 8) / len(counts)
    bars = "".join(
        f'<rect class="fill" x="{_LEFT + i * step:.1f}" y="{base - (base - 8) * n / max(counts):.1f}" width="{max(1.0, step - 2):.1f}" '
        f'height="{(base - 8) * n / max(counts):.1f}"><title>{_bin(low + i * width, width)}: {n}</title></rect>'
        for i, n in enumerate(counts)
        if n
    )
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'{bars}<path class="axis" d="M{_LEFT} 8V{base}H{_WIDTH - 8}"/>'
        f'<text x="{_LEFT - 6}" y="14" class="end">{max(counts)}</text><text x="{_LEFT - 6}" y="{base}" class="end">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{low:,}</text>'
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" class="end">{high:,}</text></svg></figure>'
    )


def _bin(first: int, width: int) -> str:
    return f"{first:,}" if width == 1 else f"{first:,} to {first + width - 1:,}"


def meter(value: float, most: float) -> str:
    """How much of what is allowed is used."""
    return (
        '<svg class="bar" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="12"/>'
        f'<rect class="fill" width="{100 * value / most:.2f}" height="12"/></svg>'
    )


def document_strip(blocks: Sequence[tuple[int, str, bool]], chain: Sequence[int]) -> str:
    """A document from end to end, (tokens, section, whether a register) a chunk, and the way of a chain through it."""
    whole = sum(tokens for tokens, _, _ in blocks) or 1
    lefts, at = [], 0.0
    for tokens, _, _ in blocks:
        lefts.append(at)
        at += 1000 * tokens / whole
    order = list(dict.fromkeys(section for _, section, _ in blocks))
    parts = []
    for i, (tokens, section, register) in enumerate(blocks):
        look = "hit" if i in chain else ("register odd" if order.index(section) % 2 else "register") if register else "noise"
        parts.append(
            f'<rect class="{look}" x="{lefts[i]:.1f}" y="60" width="{max(1.0, 1000 * tokens / whole - 1):.1f}" height="26">'
            f"<title>{i} · {escape(section)} · {tokens} tokens</title></rect>"
        )
    middles = [lefts[i] + 500 * blocks[i][0] / whole for i in chain]
    for a, b in pairwise(middles):
        parts.append(f'<path class="arc" d="M{a:.1f} 56C{a:.1f} 6 {b:.1f} 6 {b:.1f} 56"/>')
    for hop, x in enumerate(middles, start=1):
        parts.append(f'<text class="hop" x="{x:.1f}" y="77">{hop}</text>')
    for section, group in groupby(range(len(blocks)), key=lambda i: blocks[i][1]):
        ids = list(group)
        end = lefts[ids[-1]] + 1000 * blocks[ids[-1]][0] / whole
        if end - lefts[ids[0]] > 7 * len(section):  # a label that fits
            parts.append(f'<text x="{(lefts[ids[0]] + end) / 2:.1f}" y="102">{escape(section)}</text>')
    return f'<svg class="strip" viewBox="0 0 1000 110" role="img" aria-label="the document and the chain">{"".join(parts)}</svg>'
