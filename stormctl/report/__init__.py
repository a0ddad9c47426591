"""What a storm shows a person: tables, plots, the summary, and handlers that follow it while it runs."""
