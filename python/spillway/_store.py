"""Stores: where documents live."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any

from . import _walk  # defines what C calls
from ._array import Array
from ._definition import Definition
from ._errors import check
from ._handle import Handle
from ._native import ffi, lib
from ._values import DEFAULT_OPTIONS, Options

_DURABILITIES = {"fsync": lib.SPILL_DURABILITY_FSYNC, "log": lib.SPILL_DURABILITY_LOG}
_open_stores: set[Store] = set()  # also those that the program has lost: they are closed at its end

assert _walk.spill_python_log is not None


def version() -> str:
    """The version of the library."""
    return str(ffi.string(lib.spill_version()).decode())


class Store:
    """A store that is open; made by `open`. Close it, or use it in a `with` statement."""

    def __init__(self, uri: str, options: Any, codec_options: Options) -> None:
        error = ffi.new("spill_error_t *")
        store = ffi.new("spill_store_t **")
        check(lib.spill_store_open(uri.encode(), options, store, error), error)
        self._handle = Handle(store[0], "store")
        self._options = codec_options
        self._arrays: weakref.WeakSet[Array] = weakref.WeakSet()
        _open_stores.add(self)

    def close(self) -> None:
        """Close the arrays and the store, after the calls that run. A second call does nothing."""
        for array in list(self._arrays):
            array.close()
        pointer = self._handle.close()
        _open_stores.discard(self)
        if pointer is not None:
            error = ffi.new("spill_error_t *")
            check(lib.spill_store_close(pointer, error), error)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def define(self, definition: Definition) -> None:
        """Save a definition. Saving the same one again succeeds.

        RefusedError: an array with elements can change only its bounds, op_window and retention; or
        two definitions would share documents.
        """
        self._call(lib.spill_store_define, definition._pointer)

    def definitions(self) -> list[Definition]:
        """All definitions, sorted by name."""
        found = ffi.new("spill_definition_t **")
        count = ffi.new("size_t *")
        self._call(lib.spill_store_definitions, found, count)
        try:
            return [
                Definition(ffi.new("spill_definition_t *", found[0][i])) for i in range(count[0])
            ]
        finally:
            lib.bson_free(found[0])

    def array(self, name: str) -> Array:
        """Open the array of a saved definition. NotFoundError lists the existing names."""
        array = Array(self, name, self._options)
        self._arrays.add(array)
        return array

    def drop(self, name: str) -> None:
        """Drop a definition, and its owners' arrays. After a crash, call it again."""
        self._call(lib.spill_store_drop, name.encode())

    def backup(self, folder: str | os.PathLike[str]) -> None:
        """Copy an embedded store to a new folder while it is used."""
        self._call(lib.spill_store_backup, os.fsencode(folder))

    def _call(self, function: Any, *arguments: Any) -> None:
        error = ffi.new("spill_error_t *")
        with self._handle.use() as pointer:
            check(function(pointer, *arguments, error), error)


def open(
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    must_exist: bool = False,
    durability: str = "fsync",
    cache_bytes: int | None = None,
    codec_options: Options = DEFAULT_OPTIONS,
) -> Store:
    """Open a store.

    uri            a folder, "memory:", or "mongodb://HOST/DATABASE"
    read_only      read an existing store beside its writer
    must_exist     do not create a store
    durability     "fsync": an acknowledged write survives a power loss; "log": it survives the
                   death of the process
    cache_bytes    memory for an embedded store's caches; default 64 MiB
    codec_options  of the package bson, for owners and elements

    Warnings of the store go to the logger "spillway". Raises BusyError if another process writes
    to the folder, NotFoundError, DeniedError, CorruptError, FormatError, InputOutputError.
    """
    if durability not in _DURABILITIES:
        raise ValueError(f"durability: {durability!r} is neither 'fsync' nor 'log'")
    options = ffi.new("spill_store_options_t *")
    lib.spill_store_options_init(options)
    options.read_only = read_only
    options.must_exist = must_exist
    options.durability = _DURABILITIES[durability]
    options.log = lib.spill_python_log
    if cache_bytes is not None:
        options.cache_bytes = cache_bytes
    return Store(os.fspath(uri), options, codec_options)


@atexit.register
def _close_all() -> None:
    """The threads of a store must not run Python code when the interpreter is gone."""
    for store in list(_open_stores):
        store.close()
