"""Figures over episodes with 95% intervals: measured column by column, printed as one table with a column a split."""

from collections.abc import Mapping, Sequence
from typing import Any

from train.statistics import clustered_means, clustered_share, with_interval

Values = Sequence[bool | float | None]
"""One an episode; None where there was nothing to ask. Booleans make a share, numbers a mean."""
Groups = Mapping[str, Mapping[str, Values]]
"""group -> figure -> values."""

_NAME, _CELL = 40, 34


def measure(groups: Groups, clusters: Sequence[str]) -> dict[str, dict[str, Any]]:
    """group -> figure -> {"value", "interval", "n"}; value and interval are None where n is 0.

    `clusters` names the instance of each episode.
    """
    columns = [(group, name, values) for group, own in groups.items() for name, values in own.items()]
    means = [c for c in columns if not _is_share(c[2]) and _counted(c[2])]
    intervals = iter(clustered_means([values for _, _, values in means], clusters) if means else [])
    found: dict[str, dict[str, Any]] = {group: {} for group in groups}
    for group, name, values in columns:
        kept = [(value, cluster) for value, cluster in zip(values, clusters, strict=True) if value is not None]
        figure: dict[str, Any] = {"value": None, "interval": None, "n": len(kept)}
        if kept:
            figure["value"] = sum(value for value, _ in kept) / len(kept)
            share = _is_share(values)
            figure["interval"] = list(clustered_share([bool(v) for v, _ in kept], [c for _, c in kept]) if share else next(intervals))
        found[group][name] = figure
    return found


def _is_share(values: Values) -> bool:
    return all(value is None or isinstance(value, bool) for value in values)


def _counted(values: Values) -> bool:
    return any(value is not None for value in values)


def table(splits: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """split -> group -> figure -> numbers, for a terminal."""
    names: dict[str, dict[str, None]] = {}
    for groups in splits.values():
        for group, figures in groups.items():
            names.setdefault(group, {}).update(dict.fromkeys(figures))
    lines = [" " * _NAME + "".join(f"{split:>{_CELL}}" for split in splits)]
    for group, figures in names.items():
        lines += ["", _words(group)]
        for name in figures:
            cells = (_cell(own.get(group, {}).get(name)) for own in splits.values())
            lines.append(f"  {_words(name):{_NAME - 2}}" + "".join(f"{cell:>{_CELL}}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(figure: Any) -> str:
    if figure is None:
        return ""
    if isinstance(figure, int):
        return str(figure)
    if figure["value"] is None:
        return "-"
    if "chance" in figure:
        return f"{figure['value']:.3f} (by chance up to {figure['chance']:.3f})"
    return with_interval(figure["value"], figure["interval"], figure["n"])
