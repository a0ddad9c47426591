"""Faults as data: what a plan may break on purpose. A new family is one file here and one line in the registry."""
