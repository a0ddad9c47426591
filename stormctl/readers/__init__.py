"""Anyone's files into captures, and our own artefacts both ways."""

from stormctl.readers.ndjson import write_capture
from stormctl.readers.open import Unreadable, files_at, open_captures, open_file
from stormctl.readers.registry import READERS, Reader, reader_for

__all__ = [
    "READERS",
    "Reader",
    "Unreadable",
    "files_at",
    "open_captures",
    "open_file",
    "reader_for",
    "write_capture",
]
