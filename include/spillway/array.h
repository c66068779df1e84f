/*
 * One logical array for each owner, as a definition describes it.
 *
 * Elements have sequence numbers: 0, 1, 2, ... in the order of appending, given once and never
 * again. A sequence number is also the cursor: it stays valid while others append or remove.
 *
 * Threads: a spill_array_t may be used from any number of threads. Results belong to the caller.
 */
#ifndef SPILLWAY_ARRAY_H
#define SPILLWAY_ARRAY_H

#include <spillway/store.h>
#include <spillway/value.h>

SPILL_BEGIN_DECLS

typedef struct spill_array spill_array_t;

/*
 * Bind to a saved definition. Cost: one store operation. SPILL_NOT_FOUND: there is none of that
 * name. SPILL_CORRUPT: its record cannot be read.
 */
SPILL_API spill_code_t spill_array_open(spill_store_t *store, const char *name,
                                        spill_array_t **array, spill_error_t *error);
SPILL_API void spill_array_close(spill_array_t *array); /* NULL is allowed */

/* Borrows from the array. NULL if `array` is NULL. */
SPILL_API const spill_definition_t *spill_array_get_definition(const spill_array_t *array);

/* ---- append ---------------------------------------------------------------------------------- */

#define SPILL_OP_ID_MAX 64 /* bytes */

/*
 * An operation: an id of the caller's choosing and a base, any value of spill_array_op_base seen
 * for this owner before the first try. Keep both for a retry. A retry is exact until op_window
 * further appends with operation ids to that owner; after that it answers SPILL_UNKNOWN, and is
 * never applied a second time.
 *
 * The base says where to look for the id: an owner counts its appends with operation ids, and one
 * that was first tried when the count was `base` or more cannot be among the first `base` of them.
 * A lower base than need be is safe, and spends some of the window. A base that was made up and
 * lies above the count is not safe: the append is accepted, but a retry with that base does not
 * find it and is applied a second time. It is not refused, because the count may go back: a store
 * with log durability loses its last appends with the machine, an owner that is dropped and made
 * again begins at 0, and a client that read its base before may go on. Who has seen that happen
 * reads the owner, and then a new base; until then two tries with the old base may both be applied.
 */
typedef struct spill_op {
    const void *id;
    size_t id_bytes; /* 1..SPILL_OP_ID_MAX */
    int64_t base;    /* 0..SPILL_OP_BASE_MAX */
} spill_op_t;

#define SPILL_OP_BASE_MAX (INT64_MAX / 2)

#define SPILL_APPEND_OPTIONS_VERSION 1

typedef struct spill_append_options {
    int version;          /* SPILL_APPEND_OPTIONS_VERSION */
    const spill_op_t *op; /* NULL: none; a lost answer is then SPILL_UNKNOWN for good */
    /*
     * Updates of the head's other fields ($set, $unset, $inc, $min, $max), or NULL. With keep
     * newest one atomic step with the append; with keep oldest, once there are pages, a second step
     * after it: where that one is lost, SPILL_UNKNOWN with the elements counted in the result. An
     * append that is recognized as repeated does not make the update again.
     */
    const bson_t *update;
    /*
     * Fill documents to their bounds: where a document has room for the first elements of a batch
     * alone, the batch is split there, also one that fits a page. Keep newest fills them anyway.
     */
    bool fill;
} spill_append_options_t;

/* The defaults: no operation, no update, a batch that fits a page in one piece. */
SPILL_API void spill_append_options_init(spill_append_options_t *options);

typedef struct spill_append_result {
    int64_t first;   /* sequence number of the first element given */
    int64_t count;   /* elements acknowledged (all of them, unless an error was returned) */
    bool repeated;   /* the operation id was known: nothing was written this time */
    int64_t op_base; /* a base for the owner's next operation */
    /*
     * Layout capped: elements of it that the head did not keep, because there are newer ones, or
     * others that rank higher; of a known operation, those that it does not hold any more.
     */
    int64_t dropped;
    /*
     * Layout capped with a sort_field: elements that were there before, and that went because the
     * head would have passed head_bytes_max, not because `threshold` others rank higher. The head's
     * other fields count towards these bytes. Of a known operation 0.
     */
    int64_t crowded_out;
} spill_append_result_t;

/*
 * Append `count` elements, in order, to the owner's array; creates the owner. `options` and
 * `result` may be NULL. A batch that fits a page (page_capacity elements, page_bytes_max) is all
 * there or not at all and its numbers are consecutive (with keep newest it has to fit half of
 * head_bytes_max, too). A larger one is split into parts that each fit: parts are applied in order,
 * others' appends may come between them, and after an error result->count says how many elements
 * were acknowledged. A split batch with an operation id repeats exactly while it has fewer parts
 * than the window, also after the bounds were changed, unless its elements were edited or removed
 * meanwhile: then SPILL_CONFLICT.
 *
 * With keep oldest, a batch in one piece that does not fit what is left of the last document begins
 * the next, and leaves the last one short; one that does not fit an empty head leaves the head
 * empty. With options->fill documents are filled to their bounds instead: every batch is then like
 * a larger one, in parts that end where a document is full: as long as nobody else appends, one
 * part more than it would have, and one for each page that is full in bytes. An operation id has to
 * leave room for the number of a part.
 *
 * With layout capped a batch is never split, however large it is: the oldest elements that are then
 * too many are dropped for good in the same step, the batch's own first ones among them; all of the
 * batch is acknowledged with its numbers. With a sort_field it is those that rank lowest which are
 * dropped, whether new or not (spill_array_top tells how elements rank); an element alone has to
 * fit head_bytes_max then, and to have no decimal128 at its sort_field. result->dropped says how
 * many of the batch are not there, and result->crowded_out how many others went for the bytes.
 *
 * Cost: one store operation; a spill (three) every page_capacity elements, and with retention a
 * trim; with fill up to three more for each document.
 * Errors: SPILL_TOO_BIG (an element no document can hold), SPILL_INVALID (an owner of a type that
 * cannot be one, a malformed element), SPILL_CONFLICT (the id was used with another batch, or every
 * race was lost), SPILL_UNKNOWN. After an error nothing of a batch that fits a page was written,
 * but possibly after SPILL_UNKNOWN, and with fill.
 */
SPILL_API spill_code_t spill_array_append(spill_array_t *array, const spill_value_t *owner,
                                          const spill_value_t *elements, size_t count,
                                          const spill_append_options_t *options,
                                          spill_append_result_t *result, spill_error_t *error);

/* A base for the next operation on this owner; 0 for an owner that does not exist. */
SPILL_API spill_code_t spill_array_op_base(spill_array_t *array, const spill_value_t *owner,
                                           int64_t *base, spill_error_t *error);

/* Update the head's other fields as in spill_append_options; creates the owner. One atomic step. */
SPILL_API spill_code_t spill_array_update(spill_array_t *array, const spill_value_t *owner,
                                          const bson_t *update, spill_error_t *error);

/* ---- read ------------------------------------------------------------------------------------ */

typedef enum spill_order { SPILL_NEWEST_FIRST, SPILL_OLDEST_FIRST } spill_order_t;

#define SPILL_READ_OPTIONS_VERSION 1

typedef struct spill_read_options {
    int version;         /* SPILL_READ_OPTIONS_VERSION */
    spill_order_t order; /* default: newest first */
    int64_t limit;       /* most elements; default 20 */
    int64_t before;      /* only sequence numbers below; INT64_MAX (default): no bound */
    int64_t after;       /* only sequence numbers above; -1 (default): no bound */
    int64_t skip;        /* elements passed over first, counted from the end read from */
} spill_read_options_t;

/* The defaults: the newest 20 elements. */
SPILL_API void spill_read_options_init(spill_read_options_t *options);

typedef struct spill_element {
    int64_t seq;
    spill_value_t value; /* borrows from the page read */
} spill_element_t;

/* A run of elements that was read; the caller's, freed with spill_slice_free. */
typedef struct spill_slice {
    spill_element_t *elements;
    size_t count;
    bool more;    /* elements may remain beyond this slice; false is certain */
    int64_t next; /* the cursor for them: `before` when newest first, `after` when oldest first */
    void *memory; /* private */
} spill_slice_t;

/*
 * Read a run of elements in sequence order. An owner that does not exist reads as empty. `options`
 * may be NULL. SPILL_INVALID: limit is below 1, skip below 0, or there is no such order.
 * Cost: O(limit) bytes; one document where the run lies in one, else one more for each page it
 * touches. `skip` costs nothing more while nothing has been removed from pages; after removals one
 * small read for each page passed over.
 */
SPILL_API spill_code_t spill_array_read(spill_array_t *array, const spill_value_t *owner,
                                        const spill_read_options_t *options, spill_slice_t **slice,
                                        spill_error_t *error);
SPILL_API void spill_slice_free(spill_slice_t *slice); /* NULL is allowed */

/* The sources' getActivities: newest first, `skip` passed over, `limit` returned. */
SPILL_API spill_code_t spill_array_get_activities(spill_array_t *array, const spill_value_t *owner,
                                                  int64_t skip, int64_t limit,
                                                  spill_slice_t **slice, spill_error_t *error);

/*
 * Layout subset: the first `limit` of the elements in the head's summary, the highest ranking one
 * first: all of top_count, or of the array, but where they take more than half of head_bytes_max
 * (definition.h). They are those that rank highest at one moment during the call; while an edit of
 * one of them is under way, it may still count as it was. slice->more: more of them rank as high,
 * beyond `limit` or without room in the head; slice->next is not used. An owner that does not exist
 * reads as empty. Cost: one store operation, on the head alone. SPILL_INVALID: another layout.
 *
 * Layout capped with a sort_field: the first `limit` of all the elements that there are, in the
 * same order.
 */
SPILL_API spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner,
                                       int64_t limit, spill_slice_t **slice, spill_error_t *error);

typedef struct spill_count {
    bool exists;   /* has the owner a head? */
    int64_t count; /* elements, exact at one moment during the call */
    int64_t head;  /* of which in the head document */
    int64_t pages; /* page documents */
    int64_t next;  /* the sequence number that the next element will get */
    /* Layouts reference and subset: the values at the definition's value_field, also without
     * reading elements.
     */
    int64_t values; /* how many elements have a number there */
    double sum;
    double average; /* 0 where there are none */
} spill_count_t;

/* Cost: one document with keep newest; three reads with keep oldest once there are pages. */
SPILL_API spill_code_t spill_array_count(spill_array_t *array, const spill_value_t *owner,
                                         spill_count_t *count, spill_error_t *error);

/* ---- change and remove ----------------------------------------------------------------------- */

/*
 * Replace one element. SPILL_NOT_FOUND: it was deleted. SPILL_TOO_BIG: it no longer fits.
 * SPILL_INVALID: `seq` is below 0.
 */
SPILL_API spill_code_t spill_array_edit(spill_array_t *array, const spill_value_t *owner,
                                        int64_t seq, const spill_value_t *element,
                                        spill_error_t *error);

/*
 * Remove one element; its number is not used again. SPILL_NOT_FOUND: it was deleted before.
 * SPILL_INVALID: `seq` is below 0.
 */
SPILL_API spill_code_t spill_array_remove(spill_array_t *array, const spill_value_t *owner,
                                          int64_t seq, spill_error_t *error);

/*
 * The same by an element's id: the value at the definition's id_field, a path through documents.
 * Ids that compare as equal in MongoDB are one (1, 1L and 1.0). Of several elements with the id the
 * one with the lowest sequence number is meant; *seq (NULL only to edit or remove) is its number.
 * An element that has nothing at the path, or null, undefined, an array, a regular expression, or
 * more than 1024 bytes of key, has no id.
 *
 * Cost: find: one store operation where the head has it (with keep newest: and has no pages), else
 * two; by an index, whatever the array's length. Edit: two more. Remove: one more in the head,
 * three in a page. Errors: SPILL_NOT_FOUND: no element has it. SPILL_INVALID: the definition has no
 * id_field, or the value can be no id. After SPILL_UNKNOWN a removal by id may have been made, and
 * a second one would take the next element of that id: look *seq up, or remove by the number. Who
 * edits another id into an element in a page, in the moment in which it is removed by its old one,
 * may lose the element with both ids acknowledged; edits are guarded, and have no such moment.
 */
SPILL_API spill_code_t spill_array_find_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, int64_t *seq,
                                           spill_error_t *error);
SPILL_API spill_code_t spill_array_edit_id(spill_array_t *array, const spill_value_t *owner,
                                           const spill_value_t *id, const spill_value_t *element,
                                           int64_t *seq, spill_error_t *error);
SPILL_API spill_code_t spill_array_remove_id(spill_array_t *array, const spill_value_t *owner,
                                             const spill_value_t *id, int64_t *seq,
                                             spill_error_t *error);

/*
 * Remove the elements that match a filter, the oldest first, at most `limit` of them (0: all).
 * *removed (may be NULL) is how many; after an error, how many until then. A filter is a query as
 * MongoDB has it: {path: value} for equality, {path: {operator: value}} with $eq, $ne, $gt, $gte,
 * $lt, $lte, $in, $nin and $exists, all of which hold together; {operator: value} speaks of the
 * element itself. Where an array lies on a path, each document in it is looked into; an array at
 * its end matches as a whole or by any of its elements; what lies nowhere equals null. Other
 * operators, regular expressions and an empty filter are SPILL_INVALID.
 *
 * Not one atomic step: each element is judged as it was read, and removed by its number. Elements
 * that are appended meanwhile are not looked at; one that another client edits in the same moment
 * may be judged by what it was. An owner that does not exist has nothing to remove.
 * Cost: O(array): every element is read, 1000 or a page at a time, and each that is removed costs
 * as spill_array_remove.
 */
SPILL_API spill_code_t spill_array_remove_where(spill_array_t *array, const spill_value_t *owner,
                                                const bson_t *filter, int64_t limit,
                                                int64_t *removed, spill_error_t *error);

/*
 * Remove every element below a sequence number. Pages that hold nothing more are given back, but
 * for the last of them. SPILL_NOT_FOUND: there is no such owner. SPILL_INVALID: `below` is below 0.
 * Cost: four store operations, and two or three for each page that goes.
 */
SPILL_API spill_code_t spill_array_trim(spill_array_t *array, const spill_value_t *owner,
                                        int64_t below, spill_error_t *error);

/*
 * Remove all but the newest `keep` elements: so many are left at the moment of the trim, and
 * those that others append meanwhile. *below (may be NULL): what is below it is gone.
 * Cost: as spill_array_trim, and one more read for each page that goes where elements were removed.
 */
SPILL_API spill_code_t spill_array_trim_keep(spill_array_t *array, const spill_value_t *owner,
                                             int64_t keep, int64_t *below, spill_error_t *error);

/*
 * Remove elements from the oldest on, up to the first one whose time, at the definition's
 * time_field, is not before time_ms (milliseconds since 1970). A time is a date, an ObjectId's
 * time, or a timestamp; an element that has none is not older, and ends the trim. An element that
 * is edited in the same moment may be judged by what it was. *below (may be NULL): what is below it
 * is gone. SPILL_INVALID where the definition has no time_field.
 * Cost: as spill_array_trim; the elements that go are read, and up to 256 more (1000, where
 * elements are apart).
 */
SPILL_API spill_code_t spill_array_trim_older(spill_array_t *array, const spill_value_t *owner,
                                              int64_t time_ms, int64_t *below,
                                              spill_error_t *error);

/*
 * Drop the owner's array, as `$unset` would: head bookkeeping, elements, their ids, and pages. The
 * head's other fields stay, if it has any besides _id. SPILL_NOT_FOUND where there is none. A drop
 * that dies may leave pages behind, which nobody reads: call it again, and it frees them, with
 * SPILL_OK. Cost: one store operation, and one or two for each page.
 */
SPILL_API spill_code_t spill_array_drop_owner(spill_array_t *array, const spill_value_t *owner,
                                              spill_error_t *error);

/* ---- walk ------------------------------------------------------------------------------------ */

/* Return false to stop the walk, which then returns SPILL_CANCELLED. Arguments are borrowed. */
typedef bool (*spill_owner_fn)(void *context, const spill_value_t *owner);
typedef bool (*spill_element_fn)(void *context, const spill_value_t *owner,
                                 const spill_element_t *element);
typedef bool (*spill_document_fn)(void *context, const char *collection, const bson_t *document);

/* Every owner, in the store's order; owners made meanwhile may or may not be met. O(1) memory. */
SPILL_API spill_code_t spill_array_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                          spill_error_t *error);

/*
 * Every element of an owner (NULL: of every owner), oldest first, a bounded run at a time. A walk
 * over every owner passes over those whose records are damaged, with a warning to the store's log,
 * and returns SPILL_CORRUPT with the first one's message at its end. So does the next function.
 */
SPILL_API spill_code_t spill_array_export(spill_array_t *array, const spill_value_t *owner,
                                          spill_element_fn visit, void *context,
                                          spill_error_t *error);

/*
 * The documents of an owner (NULL: of every owner) as a document database holds them: the head,
 * then its pages in order. Bookkeeping stands under `spill`; without it, when `plain`.
 */
SPILL_API spill_code_t spill_array_documents(spill_array_t *array, const spill_value_t *owner,
                                             bool plain, spill_document_fn visit, void *context,
                                             spill_error_t *error);

SPILL_END_DECLS

#endif
