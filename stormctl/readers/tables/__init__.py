"""Tables of events from systems that stormctl has no reader for: a map says what their columns and words mean."""

from stormctl.readers.tables.maps import TableMap
from stormctl.readers.tables.shipped import find_map, shipped_maps

__all__ = ["TableMap", "find_map", "shipped_maps"]
