"""What is explored: a small model of an event log that forks, and models that are nondeterministic on purpose."""
