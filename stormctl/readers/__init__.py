"""Anyone's files into captures, and our own artefacts both ways."""

from stormctl.readers.ndjson import write_capture
from stormctl.readers.open import Place, Unreadable, files_at, open_captures, open_file
from stormctl.readers.reading import BY_CONTENT, Reading
from stormctl.readers.registry import READERS, Reader, reader_for, reader_named

__all__ = [
    "BY_CONTENT",
    "READERS",
    "Place",
    "Reader",
    "Reading",
    "Unreadable",
    "files_at",
    "open_captures",
    "open_file",
    "reader_for",
    "reader_named",
    "write_capture",
]
