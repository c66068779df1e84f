"""Stores: where documents live."""

from __future__ import annotations

import atexit
import warnings
import weakref
from typing import Any

from . import _walk  # defines what C calls
from ._array import Array
from ._definition import Definition
from ._errors import check
from ._handle import Handle
from ._native import ffi, lib
from ._values import DEFAULT_OPTIONS, Options, PathLike, c_path, c_text

_DURABILITIES = {"fsync": lib.SPILL_DURABILITY_FSYNC, "log": lib.SPILL_DURABILITY_LOG}
_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()  # closed at the end of the program

assert _walk.spill_python_log is not None


def version() -> str:
    """The version of the library."""
    return str(ffi.string(lib.spill_version()).decode())


class Store:
    """A store that is open; made by `open`. Close it, or use it in a `with` statement."""

    def __init__(self, uri: bytes, options: Any, codec_options: Options) -> None:
        error = ffi.new("spill_error_t *")
        store = ffi.new("spill_store_t **")
        check(lib.spill_store_open(uri, options, store, error), error)
        self._handle = Handle(store[0], "store")
        self._options = codec_options
        self._arrays: set[Handle] = set()  # open ones
        _open_stores.add(self)

    def close(self) -> None:
        """Close the arrays and the store, after the calls that run. A second call does nothing.

        In a forked child it does nothing: the store belongs to the parent.
        """
        pointer = self._handle.close()
        if pointer is None:
            return
        _open_stores.discard(self)
        for array in list(self._arrays):
            lib.spill_array_close(array.close())
        error = ffi.new("spill_error_t *")
        check(lib.spill_store_close(pointer, error), error)

    def _close_array(self, array: Handle) -> None:
        try:
            with self._handle.use():
                pointer = array.close()
                if pointer is not None:
                    self._arrays.discard(array)
                    lib.spill_array_close(pointer)
        except ValueError:
            pass  # the store was closed, and its arrays with it; or both belong to a parent

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None or handle.closing or handle.inherited:
            return
        try:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
        finally:
            self.close()

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
        return Array(self, name, self._options)

    def drop(self, name: str) -> None:
        """Drop a definition, and its owners' arrays. After a crash, call it again."""
        self._call(lib.spill_store_drop, c_text(name, "a definition's name"))

    def backup(self, folder: PathLike) -> None:
        """Copy an embedded store to a new folder while it is used."""
        self._call(lib.spill_store_backup, c_path(folder, "the folder's name"))

    def _call(self, function: Any, *arguments: Any) -> None:
        error = ffi.new("spill_error_t *")
        with self._handle.use() as pointer:
            check(function(pointer, *arguments, error), error)


def open(
    uri: PathLike,
    *,
    read_only: bool = False,
    must_exist: bool = False,
    durability: str = "fsync",
    cache_bytes: int | None = None,
    codec_options: Options = DEFAULT_OPTIONS,
) -> Store:
    """Open a store.

    uri            a folder (str, bytes or PathLike), "memory:", or "mongodb://HOST/DATABASE"
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
    return Store(c_path(uri, "the store's name"), options, codec_options)


@atexit.register
def _close_all() -> None:
    """The threads of a store must not run Python code when the interpreter is gone."""
    for store in list(_open_stores):
        store.close()
