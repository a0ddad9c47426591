"""The simulator: the runtime, the stores and the clock under a scheduler that owns order and time.

Rooms: ``kernel`` runs one schedule of a model; ``strategies`` choose; ``explore`` tries many; ``shrink``, ``certify``
make a failure small and prove it; ``models`` are what is explored: a small fork of an event log, and the real runtime
on the real append pipeline (``system``); ``oracles`` judge; ``book`` holds the scripted scenarios; ``show`` draws.
"""
