"""The book: scripted scenarios, each one race told step by step, with what must come out of it."""
