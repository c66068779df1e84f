"""Find the arrays that grow without a bound."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from ._errors import from_c
from ._native import ffi, lib
from ._values import PathLike, c_path, c_text


def scan(
    source: PathLike,
    *,
    format: str | None = None,
    collections: Sequence[str] | None = None,
    max_elements: int = 0,
    max_bytes: int = 0,
    sample: int = 0,
    rate: int = 0,
) -> dict[str, Any]:
    """Read each document of a source once, and return what docs/reference/scan-json.md describes.

    source         a folder or archive of mongodump; a .bson, NDJSON or JSON file, also .gz or .zst;
                   a server's database, "mongodb://HOST/DATABASE"; or an embedded store
    format         "ndjson", "json", "bson" or "archive"; by default from the file's name
    collections    of a server: only these
    max_elements   of an array: more are too many; default 10 000
    max_bytes      of an array in one document; default 200 KiB
    sample, rate   of a server: documents of each collection; documents per second

    Damage in the input is no error: "problems" has its places. Memory does not grow with the input.
    Ctrl-C ends the scan and raises KeyboardInterrupt.
    """
    place = c_path(source, "the source's name")
    kind = _optional(format, "the format")
    names = _optional(None if collections is None else ",".join(collections), "a collection's name")
    outcome: list[dict[str, Any] | BaseException] = []
    ended = threading.Event()
    call = lib.spill_scan_call_new()

    def run() -> dict[str, Any]:
        error = ffi.new("spill_error_t *")
        text = lib.spill_scan_call_run(
            call,
            place,
            kind,
            names,
            max_elements,
            max_bytes,
            sample,
            rate,
            error,
        )
        if text == ffi.NULL:
            raise from_c(error.code, error)
        try:
            result: dict[str, Any] = json.loads(ffi.string(text))
            return result
        finally:
            lib.bson_free(text)

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # it goes to the caller
            outcome.append(error)
        finally:
            ended.set()

    # The main thread waits where a signal reaches it: for the event, because a join that a signal
    # interrupts takes the thread for ended (CPython before 3.13).
    threading.Thread(target=work, name="spillway-scan", daemon=True).start()
    try:
        while not ended.wait(0.2):
            pass
    except BaseException:
        lib.spill_scan_call_stop(call)
        ended.wait()
        raise
    finally:
        if ended.is_set():  # not after a second Ctrl-C: the scan still reads it
            lib.spill_scan_call_free(call)
    result = outcome[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _optional(text: str | None, what: str) -> Any:
    return ffi.NULL if text is None else ffi.new("char[]", c_text(text, what))
