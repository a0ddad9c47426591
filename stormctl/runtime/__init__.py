"""The delivery of one queue message, written once as a generator of requests. It awaits nothing and reads no clock."""
