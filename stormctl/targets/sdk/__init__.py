"""The real Workflow SDK, any published version: installed as a project of its own, served by a host of ours."""
