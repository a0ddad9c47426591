"""A serving loop that drains stored events in arrival order through a view that lags behind the store.

Facts: the event visibility barrier of commontoolsinc/labs (space-server), restated. A plain state machine, played by
the kernel of :mod:`stormctl.sim`: every place where the loop awaits is a turn that others may come before.
"""
