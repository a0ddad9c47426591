"""The book: scripted scenarios, each one race told step by step, with what must come out of it.

played = play_entry(ENTRIES["in-flight-before-decision"], "mint-slot")
played.passed, played.problems
"""

from stormctl.sim.book.entry import Entry, Played, play_entry
from stormctl.sim.book.scenarios import BOOK, ENTRIES, LATER_ONES

#: the worlds that the table of the book is about
WORLDS = ("mint-ulid", "mint-slot", "append-only")

__all__ = ["BOOK", "ENTRIES", "LATER_ONES", "WORLDS", "Entry", "Played", "play_entry"]
