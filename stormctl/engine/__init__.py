"""The engine: what a workflow, replayed against a prefix of its log, asks for. No I/O, no clock, no random numbers."""
