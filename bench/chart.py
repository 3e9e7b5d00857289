"""Line charts as plain SVG text, the same bytes on every machine. It knows nothing of what it draws.

A plotting library would bring ten packages into the lock for three pictures that change once a release.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 460, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 50, 44
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#444444")  # Okabe and Ito: told apart by everybody
MOST_POINTS = 240  # of a line

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """One direction of a panel: its title, its ends, and whether each power of ten is as long as the next."""

    title: str
    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where `value` lies, 0 to 1; what is beyond an end is put there."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return log10(value / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        if self.log:
            return [10.0**power for power in range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** floor(log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        first = ceil(self.low / step)
        return [step * number for number in range(first, floor(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Panel:
    """One picture: lines by name, each in a colour of its own, in the order given."""

    title: str
    x: Axis
    y: Axis
    lines: Mapping[str, Sequence[Point]]


def svg(panels: Sequence[Panel], columns: int) -> str:
    """The panels side by side, `columns` in a row."""
    rows = ceil(len(panels) / columns)
    width, height = WIDTH * columns, HEIGHT * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({number % columns * WIDTH} {number // columns * HEIGHT})">')
        parts += _panel(panel)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel) -> Iterator[str]:
    yield _text(LEFT, 18, panel.title, "start", ' font-size="13" font-weight="bold"')
    legend, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    for name, colour in zip(panel.lines, COLOURS, strict=False):
        yield f'<path d="M{legend} 34h16" stroke="{colour}" stroke-width="2.5"/>'
        yield _text(legend + 21, 38, name, "start")
        legend += 34 + 6 * len(name)
    for value in panel.x.ticks():
        x = _across(panel, value)
        yield f'<path d="M{x:g} {TOP}V{bottom}" stroke="#e4e4e4"/>'
        yield _text(x, bottom + 15, short(value), "middle")
    for value in panel.y.ticks():
        y = _up(panel, value)
        yield f'<path d="M{LEFT} {y:g}H{right}" stroke="#e4e4e4"/>'
        yield _text(LEFT - 6, y + 4, short(value), "end")
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="#888" fill="none"/>'
    yield _text((LEFT + right) / 2, HEIGHT - 10, panel.x.title, "middle")
    middle = (TOP + bottom) / 2
    yield _text(14, middle, panel.y.title, "middle", f' transform="rotate(-90 14 {middle:g})"')
    for points, colour in zip(panel.lines.values(), COLOURS, strict=False):
        path = "L".join(f"{_across(panel, at):g} {_up(panel, value):g}" for at, value in _thinned(points))
        yield f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none" stroke-linejoin="round"/>'


def short(value: float) -> str:
    """A tick's text: 1,000 is 1k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    step = ceil(len(points) / MOST_POINTS)
    return points if step <= 1 else [*points[::step], points[-1]]


def _across(panel: Panel, value: float) -> float:
    return round(LEFT + panel.x.place(value) * (WIDTH - LEFT - RIGHT), 1)


def _up(panel: Panel, value: float) -> float:
    return round(HEIGHT - BOTTOM - panel.y.place(value) * (HEIGHT - TOP - BOTTOM), 1)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
