"""The heat map for a terminal: the ranks that flip or diverge, a letter per prefix, a capital where a rank flips."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase, digits

from rich.text import Text

from stormctl.report.binding_map import KIND_COLOURS, colours
from stormctl.sweeps.bindings import BindingMap, touched, window
from stormctl.sweeps.witness import clean

MOST_ROWS = 9
#: columns for the rank, before the letters
MARGIN = 8
BLANK = "."


def binding_strip(found: BindingMap, width: int = 78) -> list[Text]:
    """Lines of at most ``width`` columns; none where nothing flips or diverges. Colour adds nothing to the letters."""
    columns = window(found, columns=max(8, width - MARGIN), before=8, after=8)
    rows = list(touched(found, columns, around=1, most=MOST_ROWS))
    if not rows:
        return []
    letters = letters_for(found, rows, columns)
    styles = {label: _style(label, colour) for label, (_, colour) in colours(found).items()}
    flips = {(change.rank, change.column) for change in found.changes}
    lines = [_names(found, columns, width)]
    for above, rank in zip([None, *rows], rows, strict=False):
        if above is not None and rank > above + 1:
            lines.append(Text(f"{'..':>{MARGIN - 2}}", style="dim"))
        line = Text(f"{rank:>{MARGIN - 2}}  ")
        for column in columns:
            label = found.at(rank, column)
            if label is None:
                line.append(BLANK, style="dim")
            elif (rank, column) in flips:
                line.append(letters[label].upper(), style="bold reverse")
            else:
                line.append(letters[label], style=styles[label])
        line.rstrip()
        lines.append(line)
    if found.diverges is not None and found.diverges in columns:
        lines.append(Text(f"{' ' * (MARGIN + found.diverges - columns.start)}^", style="red"))
    lines += _key(found, letters, columns, width)
    return lines


def letters_for(found: BindingMap, rows: list[int], columns: range) -> dict[str, str]:
    """A small letter for each label in sight, of its own word where one is free. Those that flip choose first."""
    seen = [label for change in found.changes if change.column in columns for label in (change.was, change.now)]
    seen += [label for rank in rows for column in columns if (label := found.at(rank, column)) is not None]
    letters: dict[str, str] = {}
    for label in dict.fromkeys(seen):
        wanted = [letter for letter in _word(label).lower() if letter in ascii_lowercase]
        free = [letter for letter in (*wanted, *ascii_lowercase, *digits) if letter not in letters.values()]
        letters[label] = free[0] if free else "*"
    return letters


def _names(found: BindingMap, columns: range, width: int) -> Text:
    """The names of every tenth prefix, above its letter."""
    line = f"{found.row:>{MARGIN - 2}}".ljust(MARGIN)
    for column in columns:
        name = found.prefixes[column]
        place = MARGIN + column - columns.start
        free = place >= len(line.rstrip()) + 1 and place + len(str(name)) <= width
        if free and (name % 10 == 0 or column == columns.start):
            line = line.rstrip().ljust(place) + str(name)
    return Text(line, style="dim")


def _key(found: BindingMap, letters: dict[str, str], columns: range, width: int) -> Iterator[Text]:
    words = [f"{letter} {_word(label)}" for label, letter in letters.items()]
    flips = [change for change in found.changes if change.column in columns]
    if flips:
        words.append("a capital: it flips there")
    if found.diverges in columns:
        words.append(f"^ diverges: the log has {_word(found.expected)}" if found.expected else "^ diverges")
    left = len(found.changes) - len(flips)
    if left:
        words.append(f"{left} more flip{'' if left == 1 else 's'} outside")
    line = " " * MARGIN
    for word in words:
        if len(line) > MARGIN and len(line) + len(word) + 3 > width:
            yield Text(line.rstrip(), style="dim")
            line = " " * MARGIN
        line += word + "   "
    yield Text(line.rstrip(), style="dim")


def _style(label: str, colour: str) -> str:
    return "dim" if label in KIND_COLOURS else colour


def _word(label: str) -> str:
    return clean(label.removeprefix("step:"))
