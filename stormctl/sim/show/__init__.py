"""A schedule for a person: lanes, the pair that raced, the neighbour that goes well, and one paragraph.

print("\\n".join(lines_of(picture(model, run))))
"""

from stormctl.sim.show.lanes import Lanes, Row, drawn
from stormctl.sim.show.neighbour import Neighbour, nearest_passing
from stormctl.sim.show.picture import Picture, lines_of, picture
from stormctl.sim.show.race import Race, racing_pair

__all__ = [
    "Lanes",
    "Neighbour",
    "Picture",
    "Race",
    "Row",
    "drawn",
    "lines_of",
    "nearest_passing",
    "picture",
    "racing_pair",
]
