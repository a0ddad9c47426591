"""The scenarios: for each a body, its steps, the driver that presses on it, and what a completed run must show."""
