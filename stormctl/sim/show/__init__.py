"""A schedule for a person: lanes, the pair that raced, the neighbour that goes well, and one paragraph.

found = picture(run, neighbour=nearest_passing(model, run))
print("\n".join(drawn(found)))
"""

from stormctl.sim.show.lanes import Lanes, Row, drawn
from stormctl.sim.show.neighbour import Neighbour, nearest_passing
from stormctl.sim.show.race import Race, racing_pair

__all__ = ["Lanes", "Neighbour", "Race", "Row", "drawn", "nearest_passing", "racing_pair"]
