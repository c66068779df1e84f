"""Definitions: what describes an array in a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bson

from ._errors import CorruptError, FormatError, InvalidError, check
from ._native import ffi, lib
from ._values import DEFAULT_OPTIONS, Document, c_text

_BOUNDS = ("threshold", "page_capacity", "head_bytes_max", "page_bytes_max")
_LAYOUTS = {
    "outlier": lib.SPILL_LAYOUT_OUTLIER,
    "reference": lib.SPILL_LAYOUT_REFERENCE,
    "bucket": lib.SPILL_LAYOUT_BUCKET,
    "capped": lib.SPILL_LAYOUT_CAPPED,
    "subset": lib.SPILL_LAYOUT_SUBSET,
}


def presets() -> list[str]:
    """The names of the presets."""
    names = lib.spill_definition_presets()
    result: list[str] = []
    while names[len(result)] != ffi.NULL:
        result.append(ffi.string(names[len(result)]).decode())
    return result


class Definition:
    """Describes one array: its layout, the names of collections and fields, and the bounds.

    Start from a preset, change what differs with `replace`, and save it with Store.define. A
    definition never changes: `replace` makes a copy.
    """

    __slots__ = ("_pointer",)

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer

    @classmethod
    def preset(cls, preset: str, name: str, **changes: Any) -> Definition:
        """Make a definition from a preset; `changes` as in `replace`.

        NotFoundError: there is no such preset; the text lists them.
        """
        pointer = ffi.new("spill_definition_t *")
        error = ffi.new("spill_error_t *")
        check(
            lib.spill_definition_preset(
                pointer,
                c_text(preset, "a preset's name"),
                c_text(name, "a definition's name"),
                error,
            ),
            error,
        )
        return cls(pointer).replace(**changes)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Definition:
        """Make a definition from a document that to_document made. InvalidError names a field."""
        pointer = ffi.new("spill_definition_t *")
        error = ffi.new("spill_error_t *")
        given = Document(document, DEFAULT_OPTIONS)
        try:
            check(lib.spill_definition_from_bson(pointer, given.pointer, error), error)
        except CorruptError as wrong:
            raise InvalidError(str(wrong)) from None
        return cls(pointer)

    def to_document(self) -> dict[str, Any]:
        """The definition as the store saves it."""
        document = ffi.new("bson_t *")
        lib.spill_definition_to_bson(self._pointer, document)
        try:
            data = ffi.buffer(lib.bson_get_data(document), document.len)[:]
        finally:
            lib.bson_destroy(document)
        fields: dict[str, Any] = bson.decode(data)
        return fields

    def replace(self, **changes: Any) -> Definition:
        """A copy with other values, for example threshold=100, array="cart.items", unique=True.

        The names are those of spill_definition_t and its bounds (definition.h); `layout` and `keep`
        are strings. Changing `layout` first adapts the other fields to it. InvalidError: a name is
        not known or a value out of range.
        """
        result = self
        layout = changes.pop("layout", None)
        if layout is not None:
            result = result._with_layout(layout)
        if not changes:
            return result
        document = result.to_document()
        for name, value in changes.items():
            place = document["bounds"] if name in _BOUNDS else document
            if value == "" or value is None:
                place.pop(_camel(name), None)
            else:
                place[_camel(name)] = bson.Int64(value) if type(value) is int else value
        if "opWindow" in document:
            document["opWindow"] = int(document["opWindow"])
        try:
            return Definition.from_document(document)
        except FormatError as unknown:
            raise InvalidError(str(unknown)) from None

    def _with_layout(self, layout: str) -> Definition:
        if layout not in _LAYOUTS:
            raise InvalidError(f"there is no layout '{layout}'; give one of {', '.join(_LAYOUTS)}")
        pointer = ffi.new("spill_definition_t *", self._pointer[0])
        lib.spill_definition_set_layout(pointer, _LAYOUTS[layout])
        return Definition(pointer)

    @property
    def name(self) -> str:
        """The name in the store; Store.array opens the array by it."""
        return str(ffi.string(self._pointer.name).decode())

    @property
    def layout(self) -> str:
        """"outlier", "reference", "bucket", "capped" or "subset"."""
        return str(self.to_document()["layout"])

    @property
    def threshold(self) -> int:
        """Elements from which a head spills."""
        return self._bound("threshold")

    @property
    def page_capacity(self) -> int:
        """Most elements of a page."""
        return self._bound("pageCapacity")

    @property
    def head_bytes_max(self) -> int:
        """Most bytes of a head."""
        return self._bound("headBytesMax")

    @property
    def page_bytes_max(self) -> int:
        """Most bytes of a page."""
        return self._bound("pageBytesMax")

    def _bound(self, name: str) -> int:
        return int(self.to_document()["bounds"][name])

    def __eq__(self, other: object) -> bool:
        """The same, apart from the highest bounds so far, which a store adds."""
        return isinstance(other, Definition) and self._compared() == other._compared()

    def _compared(self) -> dict[str, Any]:
        document = self.to_document()
        document.pop("largest", None)
        return document

    def __repr__(self) -> str:
        return f"Definition.from_document({self.to_document()!r})"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
