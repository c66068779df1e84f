"""One logical array for each owner."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._definition import Definition
from ._errors import NotFoundError, check
from ._handle import Handle
from ._native import ffi, lib
from ._values import Document, Options, Values, c_text, encode, pack, unpack
from ._walk import Walk

if TYPE_CHECKING:
    from ._store import Store

_LAST = 2**63 - 1


@dataclass(frozen=True)
class Element:
    """An element, and the number that it keeps for ever: 0, 1, 2, ... in the order of appends."""

    seq: int
    value: Any


@dataclass(frozen=True)
class Page:
    """A run of elements. `next` continues it: as `before` newest first, else as `after`."""

    elements: list[Element]
    more: bool
    next: int

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)


@dataclass(frozen=True)
class Count:
    """An owner's elements: all, those in the head document, and the number of pages."""

    exists: bool
    count: int
    head: int
    pages: int
    next: int


@dataclass(frozen=True)
class Appended:
    """What an append did.

    first       the number of the first element; -1 if all were duplicates
    count       elements acknowledged
    repeated    the operation was known: nothing was written this time
    duplicates  elements left out, because the array keeps each id once and has theirs
    dropped     layout capped: elements of the batch that the head did not keep
    op_base     a base for the owner's next Operation, without a read
    """

    first: int
    count: int
    repeated: bool
    duplicates: int
    dropped: int
    op_base: int


@dataclass(frozen=True)
class Operation:
    """Makes an append exact once: keep it for retries, and use it for one append only.

    A retry is exact until op_window further appends with operations to that owner. After that it
    raises UnknownOutcomeError, and is never applied a second time. To be exact across a restart,
    store id and base durably before the first try: an id with a newer base may be appended twice.
    """

    id: bytes
    base: int


class Array:
    """A definition that was opened on a store; made by Store.array."""

    def __init__(self, store: Store, name: str, options: Options) -> None:
        self._options = options
        error = ffi.new("spill_error_t *")
        array = ffi.new("spill_array_t **")
        with store._handle.use() as pointer:
            given = c_text(name, "a definition's name")
            check(lib.spill_array_open(pointer, given, array, error), error)
            self._store = store
            self._handle = Handle(array[0], f"array {name}")
            store._arrays.add(self._handle)

    def close(self) -> None:
        """Close the array, after the calls that run. A store closes its arrays itself."""
        self._store._close_array(self._handle)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):  # else the definition does not exist
            self.close()

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def definition(self) -> Definition:
        """The definition, as it was when the array was opened."""
        with self._handle.use() as pointer:
            borrowed = lib.spill_array_get_definition(pointer)
            return Definition(ffi.new("spill_definition_t *", borrowed[0]))

    # ---- append ----

    def append(
        self,
        owner: Any,
        element: Any,
        *,
        operation: Operation | None = None,
        update: Mapping[str, Any] | None = None,
    ) -> Appended:
        """Append one element; as `extend` with a list of one."""
        return self.extend(owner, [element], operation=operation, update=update)

    def extend(
        self,
        owner: Any,
        elements: Sequence[Any],
        *,
        operation: Operation | None = None,
        update: Mapping[str, Any] | None = None,
    ) -> Appended:
        """Append elements, in order. Creates the owner.

        A batch that fits a page is appended completely or not at all; a larger one is split.
        `update` changes other fields of the head ($set, $unset, $inc, $min, $max).

        Cost: one store operation, whatever the array's length. Raises TooBigError, InvalidError,
        ConflictError, and UnknownOutcomeError: repeat the call with the same operation.
        """
        if isinstance(elements, (str, bytes, Mapping)):
            raise TypeError(f"elements is a list; give [element], not {type(elements).__name__}")
        options = ffi.new("spill_append_options_t *")
        lib.spill_append_options_init(options)
        kept = []
        if operation is not None:
            identity = ffi.from_buffer(operation.id)
            op = ffi.new(
                "spill_op_t *",
                {"id": identity, "id_bytes": len(operation.id), "base": operation.base},
            )
            options.op = op
            kept += [identity, op]
        if update is not None:
            document = Document(update, self._options)
            options.update = document.pointer
            kept.append(document)
        result = ffi.new("spill_append_result_t *")
        error = ffi.new("spill_error_t *")
        name, values = encode(owner, self._options), Values(elements, self._options)
        with self._handle.use() as pointer:
            check(
                lib.spill_array_append(
                    pointer, name.pointer, values.pointer, values.count, options, result, error
                ),
                error,
            )
        return Appended(
            result.first,
            result.count,
            result.repeated,
            result.duplicates,
            result.dropped,
            result.op_base,
        )

    def operation(self, owner: Any, id: bytes | None = None) -> Operation:
        """Begin an operation for one append to this owner. `id`: 1 to 64 bytes; None: a new one.

        Cost: one read of the owner's state. Appended.op_base saves it for the next operation.
        """
        if id is not None and not isinstance(id, bytes):
            raise TypeError(f"an operation's id has type bytes, not {type(id).__name__}")
        base = ffi.new("int64_t *")
        self._call(lib.spill_array_op_base, owner, base)
        return Operation(uuid.uuid4().bytes if id is None else id, base[0])

    def update(self, owner: Any, update: Mapping[str, Any]) -> None:
        """Change other fields of the owner's head; creates the owner. One atomic step."""
        self._call(lib.spill_array_update, owner, Document(update, self._options))

    # ---- read ----

    def read(
        self,
        owner: Any,
        *,
        limit: int = 20,
        oldest_first: bool = False,
        before: int | None = None,
        after: int | None = None,
        skip: int = 0,
    ) -> Page:
        """Read a page, newest first by default. An owner that does not exist reads as empty.

        `before` and `after` are numbers of elements, both exclusive. Cost: O(limit) bytes.
        """
        options = ffi.new("spill_read_options_t *")
        lib.spill_read_options_init(options)
        options.order = lib.SPILL_OLDEST_FIRST if oldest_first else lib.SPILL_NEWEST_FIRST
        options.limit = limit
        options.before = _LAST if before is None else before
        options.after = -1 if after is None else after
        options.skip = skip
        slice_ = ffi.new("spill_slice_t **")
        self._call(lib.spill_array_read, owner, options, slice_)
        read = slice_[0]
        try:
            numbers = [read.elements[i].seq for i in range(read.count)]
            values = unpack([pack(read.elements[i].value) for i in range(read.count)], self._options)
            return Page(list(map(Element, numbers, values)), read.more, read.next)
        finally:
            lib.spill_slice_free(read)

    def iterate(
        self, owner: Any, *, newest_first: bool = False, page: int = 1000
    ) -> Iterator[Element]:
        """Iterate over an owner's elements, `page` at a time, oldest first by default.

        Elements that are appended meanwhile are met if they lie ahead. Memory: one page.
        """
        cursor: int | None = None
        more = True
        while more:
            read = self.read(
                owner,
                limit=page,
                oldest_first=not newest_first,
                before=cursor if newest_first else None,
                after=None if newest_first else cursor,
            )
            yield from read.elements
            cursor, more = read.next, read.more

    def count(self, owner: Any) -> Count:
        """Count an owner's elements; exact at one moment during the call. Cost: O(1)."""
        count = ffi.new("spill_count_t *")
        self._call(lib.spill_array_count, owner, count)
        return Count(count.exists, count.count, count.head, count.pages, count.next)

    def find(self, owner: Any, id: Any) -> int | None:
        """The number of the element with this id, or None. The definition has an id_field.

        Cost: at most two store operations; an index finds it.
        """
        seq = ffi.new("int64_t *")
        try:
            self._call(lib.spill_array_find_id, owner, encode(id, self._options), seq)
        except NotFoundError:
            return None
        return int(seq[0])

    def contains(self, owner: Any, id: Any) -> bool:
        """Does the array have an element with this id? As `find`."""
        return self.find(owner, id) is not None

    def owners(self) -> Iterator[Any]:
        """Iterate over all owners, in the store's order. Owners created meanwhile may be missed.

        A thread of its own reads ahead, at most 1000 owners.
        """

        def run(context: Any) -> None:
            error = ffi.new("spill_error_t *")
            with self._handle.use() as pointer:
                check(
                    lib.spill_array_owners(pointer, lib.spill_python_owner, context, error), error
                )

        for owner in Walk(self._handle, run).items():
            yield unpack([owner], self._options)[0]

    def walk(self) -> Iterator[tuple[Any, Element]]:
        """Iterate over the elements of every owner, each owner's oldest first.

        Reads the store once, in its order. Damaged owners are skipped; CorruptError names the first
        one at the end. A thread of its own reads ahead, at most 1000 elements.
        """

        def run(context: Any) -> None:
            error = ffi.new("spill_error_t *")
            with self._handle.use() as pointer:
                check(
                    lib.spill_array_export(
                        pointer, ffi.NULL, lib.spill_python_element, context, error
                    ),
                    error,
                )

        for owner, seq, value in Walk(self._handle, run).items():
            name, element = unpack([owner, value], self._options)
            yield name, Element(seq, element)

    # ---- change and remove ----

    def edit(self, owner: Any, seq: int, element: Any) -> None:
        """Replace the element with this number. NotFoundError: it was removed."""
        self._call(lib.spill_array_edit, owner, seq, encode(element, self._options))

    def remove(self, owner: Any, seq: int) -> None:
        """Remove the element with this number. NotFoundError: it was removed before."""
        self._call(lib.spill_array_remove, owner, seq)

    def remove_id(self, owner: Any, id: Any) -> int:
        """Remove the element with this id, and return its number. NotFoundError: there is none."""
        seq = ffi.new("int64_t *")
        self._call(lib.spill_array_remove_id, owner, encode(id, self._options), seq)
        return int(seq[0])

    def trim(self, owner: Any, keep: int) -> int:
        """Remove all but the newest `keep` elements; every number below the result is gone."""
        below = ffi.new("int64_t *")
        self._call(lib.spill_array_trim_keep, owner, keep, below)
        return int(below[0])

    def drop(self, owner: Any) -> None:
        """Drop the owner's array; other fields of the head stay. NotFoundError: no such owner."""
        self._call(lib.spill_array_drop_owner, owner)

    def _call(self, function: Any, owner: Any, *arguments: Any) -> None:
        error = ffi.new("spill_error_t *")
        given = [encode(owner, self._options), *arguments]  # they own the bytes during the call
        pointers = [x.pointer if isinstance(x, (Values, Document)) else x for x in given]
        with self._handle.use() as pointer:
            check(function(pointer, *pointers, error), error)
