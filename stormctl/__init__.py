"""stormctl: provoke, capture and explain event-log corruption in durable-execution engines."""

__version__ = "0.1.0"
