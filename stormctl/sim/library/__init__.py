"""Known bugs that a search finds without a script, each with a twin in which it is repaired."""

from stormctl.sim.library.bugs import BUGS, Bug, bug
from stormctl.sim.library.hunts import Hunt, hunts

__all__ = ["BUGS", "Bug", "Hunt", "bug", "hunts"]
