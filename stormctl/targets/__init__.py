"""Storms and replays on software that is not ours."""
