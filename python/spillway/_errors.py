"""Errors: one class for each code of the library. docs/reference/errors.md says what to do."""

from __future__ import annotations

from typing import Any

from ._native import ffi, lib


class SpillwayError(Exception):
    """A call failed. The text names the place: owner, page, file or line.

    code       the name of the library's code, "CONFLICT"
    native     the errno of a system call or the server's code, or 0
    retryable  the same call may succeed later
    reason     a number of spill_reason_t, for callers that handle some refusals; 0: none
    """

    def __init__(
        self,
        message: str,
        code: str = "INVALID",
        native: int = 0,
        retryable: bool = False,
        reason: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.native = native
        self.retryable = retryable
        self.reason = reason


class NotFoundError(SpillwayError):
    """There is no such store, definition, owner or element."""


class InvalidError(SpillwayError):
    """An argument is malformed or out of range. Nothing was changed."""


class ParseError(SpillwayError):
    """The input is malformed."""


class TooBigError(SpillwayError):
    """No document can hold the element."""


class ConflictError(SpillwayError):
    """Other writers won every race, or an operation id was used with other elements."""


class RefusedError(SpillwayError):
    """The call would break a rule; the text says which."""


class UnknownOutcomeError(SpillwayError):
    """The write may have happened. Repeat an append with its Operation."""


class CorruptError(SpillwayError):
    """Stored data is damaged."""


class BusyError(SpillwayError):
    """Another process has the store open for writing."""


class ReadOnlyError(SpillwayError):
    """The store was opened for reading only."""


class DeniedError(SpillwayError):
    """The system or the server denies access."""


class NoSpaceError(SpillwayError):
    """The disk is full."""


class InputOutputError(SpillwayError):
    """A file, a socket or a server failed."""


class FormatError(SpillwayError):
    """The store was made by a newer version."""


class CancelledError(SpillwayError):
    """The caller ended the call."""


class NoMemoryError(SpillwayError):
    """The system has no memory left."""


class TimedOutError(SpillwayError):
    """A deadline has passed, and nothing was changed."""


CLASSES: dict[str, type[SpillwayError]] = {
    "NOT_FOUND": NotFoundError,
    "INVALID": InvalidError,
    "PARSE": ParseError,
    "TOO_BIG": TooBigError,
    "CONFLICT": ConflictError,
    "REFUSED": RefusedError,
    "UNKNOWN": UnknownOutcomeError,
    "CORRUPT": CorruptError,
    "BUSY": BusyError,
    "READ_ONLY": ReadOnlyError,
    "DENIED": DeniedError,
    "NO_SPACE": NoSpaceError,
    "IO": InputOutputError,
    "FORMAT": FormatError,
    "CANCELLED": CancelledError,
    "NO_MEMORY": NoMemoryError,
    "TIMED_OUT": TimedOutError,
}


def from_c(code: int, error: Any) -> SpillwayError:
    """The exception for a code of the library and its spill_error_t."""
    name = ffi.string(lib.spill_code_name(code)).decode()
    message = ffi.string(error.message).decode(errors="replace")
    return CLASSES.get(name, SpillwayError)(
        message, name, error.native, error.retryable, error.reason
    )


def check(code: int, error: Any) -> None:
    """Raise the exception of a code other than SPILL_OK."""
    if code != lib.SPILL_OK:
        raise from_c(code, error)
