"""Line charts as inline SVG, without a library: a report is one file that opens anywhere."""

from collections.abc import Sequence
from html import escape

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
