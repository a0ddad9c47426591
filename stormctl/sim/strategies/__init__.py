"""Ways to choose the schedules of a model, one a file; :mod:`~stormctl.sim.strategies.registry` knows them by name."""
