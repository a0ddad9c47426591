"""The target ``url``: storms on an application that somebody else runs, described in a small YAML file."""
