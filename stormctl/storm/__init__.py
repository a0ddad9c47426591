"""Storms: a plan, its attempts, what presses on them, how they came out, and the folder that keeps it all."""
