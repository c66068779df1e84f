"""Python values as values of the library, and back.

The library's value is a type and the bytes that BSON stores after a field's name. The package bson
writes and reads documents; the documents here have one field with an empty name:

    size (4 bytes), type (1), name "" (1), the value's bytes, 0 (1)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Union

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from ._native import ffi, lib

Options = CodecOptions[Any]
PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
DEFAULT_OPTIONS: Options = DEFAULT_CODEC_OPTIONS

_BEFORE = 6  # bytes of the document before the value
_AROUND = 7


def c_text(text: str, what: str) -> bytes:
    """A text for the library, for which a NUL ends a text. ValueError: it has one."""
    if "\0" in text:
        raise ValueError(f"{what} has a NUL character: {text!r}")
    return text.encode()


def c_path(path: PathLike, what: str) -> bytes:
    """The name of a file or a store for the library; as c_text."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"{what} has a NUL character: {path!r}")
    return name


class Values:
    """An array of spill_value_t that owns its bytes."""

    def __init__(self, values: Sequence[Any], options: Options) -> None:
        documents = [bson.encode({"": value}, codec_options=options) for value in values]
        self._buffers = [ffi.from_buffer("uint8_t[]", document) for document in documents]
        self.count = len(documents)
        self.pointer = ffi.new("spill_value_t[]", self.count or 1)
        for i, document in enumerate(documents):
            value = self.pointer[i]
            value.data = self._buffers[i] + _BEFORE
            value.size_bytes = len(document) - _AROUND
            value.type = document[4]


class Document:
    """A bson_t that owns its bytes."""

    def __init__(self, document: Mapping[str, Any], options: Options) -> None:
        self._bytes = bson.encode(document, codec_options=options)
        self._buffer = ffi.from_buffer("uint8_t[]", self._bytes)
        self.pointer = ffi.new("bson_t *")
        lib.bson_init_static(self.pointer, self._buffer, len(self._bytes))


def encode(value: Any, options: Options) -> Values:
    """One value."""
    return Values([value], options)


def pack(value: Any) -> bytes:
    """Copy a spill_value_t into a document that `unpack` reads."""
    data = ffi.buffer(value.data, value.size_bytes)[:]
    return b"".join(
        (struct.pack("<iBB", len(data) + _AROUND, value.type, 0), data, b"\0"))


def unpack(documents: Sequence[bytes], options: Options) -> list[Any]:
    """The values of documents that `pack` made."""
    return [document[""] for document in bson.decode_all(b"".join(documents), options)]
