/*
 * From the documents of an input to the elements of an import: a stage between the document source
 * and the chunks, the same for every source. A record is one element, or a document with an array
 * or a map: then the array's elements or the map's entries become elements.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_ELEMENTS_H
#define SPILL_TOOLS_IMPORT_IMPORT_ELEMENTS_H

#include "bson/value.h"
#include "tools/import/import_exported.h"
#include "util/buffer.h"

#include <spillway/bucket.h>

#include <spillway/error.h>

/*
 * How a document becomes elements. A path is the whole name of a field, or names with '.' between
 * them, through documents only. `array` may pass one array or map with '$' instead of a name, as in
 * "chats.$.messages"; then it needs `inner`. Borrowed.
 */
typedef struct spill_elements_options {
    const char *array;      /* NULL: each document is one element */
    const char *owner;      /* the path of the owner; NULL: the documents are lines of an export */
    const char *entries_as; /* the array is a map: the field with an entry's key; or NULL */
    const char *inner;      /* "FIELD" or "FIELD=PATH": owners are {_id: owner, FIELD: inner}. The
                               inner value is at PATH of the inner document; without PATH it is the
                               document's position, or its key in a map. NULL: no inner arrays */
    bool fields;            /* keep the other fields in the head */
    bool backwards;         /* the last element of an array is the first item */
    /* The target: of an export's documents, and to check other fields. NULL: neither. */
    const spill_definition_t *definition;
    const spill_definition_t *stored; /* all definitions of the target */
    size_t stored_count;
} spill_elements_options_t;

/* SPILL_INVALID: the options contradict each other. */
spill_code_t spill_elements_check(const spill_elements_options_t *options, spill_error_t *error);

/* What a document gives, one after the other. Borrowed until the next one is read. */
typedef struct spill_input_item {
    spill_value_t owner;
    spill_value_t element; /* data NULL: none, only an update */
    const bson_t *update;  /* {$set: other fields of the owner's head}, or NULL */
    int64_t seq;           /* the element's number in an export; -1: none */
    const char *window;    /* its window in an export, or NULL */
} spill_input_item_t;

typedef struct spill_split {
    const spill_elements_options_t *options;
    char *outer;       /* the path of the array of inner documents; NULL: no inner arrays */
    char *path;        /* of the array: in the document, or in an inner document */
    char *inner_field; /* and the path of its value, which borrows; NULL: the position */
    const char *inner_path;

    /* The document that is being split, and its owner; borrowed. */
    const bson_t *document;
    spill_value_t id;
    spill_export_lines_t lines; /* of an export: the kind of its lines; NONE: not known yet */
    spill_export_line_t line;   /* of an export: the document */

    /* A head or a page of an export. The items of an owner's documents follow each other. */
    spill_exported_t exported;
    bson_t *held;      /* a head whose elements follow those of its pages; or NULL */
    bool finished;     /* its elements are being read, and no page follows */
    int64_t pages;     /* that the owner's head counts; -1: not known */
    int64_t next_page; /* the number of the page that follows */
    int64_t first;     /* the first number of the head */
    bool is_newest;    /* the head has the newest elements */
    bool lacks;        /* a missing or bad page of the owner was reported */
    int64_t watermark; /* lower numbers of the owner were trimmed */
    char window[SPILL_WINDOW_SIZE];
    spill_buffer_t owner_key; /* of the owner of these documents */

    spill_fields_t inners; /* the inner documents that were not read yet */
    bool outer_is_map;
    int64_t inner_count;    /* read so far */
    spill_fields_t left;    /* the elements or entries of the current array */
    int64_t taken;          /* elements of the current array that were read */
    const uint8_t **starts; /* backwards: the starts of its fields that were not read yet */
    size_t start_count;
    size_t start_capacity;
    bool update_due;
    spill_value_t owner; /* of the current array */
    bson_t owner_storage, element_storage, update_storage;

    int64_t items;   /* of the document, read so far */
    int64_t missing; /* arrays that the document lacks: itself, or its inner documents */
} spill_split_t;

/* The options are borrowed and checked. Release in every case. */
void spill_split_init(spill_split_t *split, const spill_elements_options_t *options);
void spill_split_release(spill_split_t *split);

/*
 * Start with a document, which is borrowed until its last item. SPILL_PARSE: it has no owner, or
 * what should be an array is something else. The message does not name the record's place.
 */
spill_code_t spill_split_begin(spill_split_t *split, const bson_t *document, spill_error_t *error);

/* Read the next item; *end is true after the last one. SPILL_PARSE. */
spill_code_t spill_split_next(spill_split_t *split, spill_input_item_t *item, bool *end,
                              spill_error_t *error);

/*
 * Documents of an export: after the last item of one, the caller reads the next document. If it is
 * a page of the same owner, join it: its items are the next ones. Else finish the owner: the items
 * of its head may follow.
 *
 * *joins: `document` was begun as a page of the current owner, and is borrowed until its last item.
 * SPILL_PARSE: it is no line of the export.
 */
bool spill_split_is_exported(const spill_split_t *split);
spill_code_t spill_split_join(spill_split_t *split, const bson_t *document, bool *joins,
                              spill_error_t *error);

/*
 * Are pages missing before the document that was joined; or, after the last one, behind it? Call
 * this once for each, before its items are read. SPILL_PARSE, once for an owner: the message names
 * the owner. The items that were read so far are the owner's first ones, without a gap.
 */
spill_code_t spill_split_check_gap(spill_split_t *split, spill_error_t *error);
spill_code_t spill_split_check_end(spill_split_t *split, spill_error_t *error);

/* A bad line was left out behind the owner's documents so far: it may have been one of them. */
void spill_split_leave_out(spill_split_t *split);

/* True: more items follow. False: the owner has none left; also for other inputs. */
bool spill_split_finish(spill_split_t *split);

/* Put the owner, and the element's number in its array if it has one, before an error's message. */
spill_code_t spill_split_fail(const spill_split_t *split, spill_code_t code, spill_error_t *error);

/* ---- for import_exported_items.c ------------------------------------------------------------- */

/* Read an array, or NULL, from its oldest element on. */
void spill_split_begin_array(spill_split_t *split, const spill_value_t *array);

/* Read the next field of the current array. False: there is none. */
bool spill_split_next_field(spill_split_t *split, const char **name, spill_value_t *value);

/* As spill_split_begin and spill_split_next, for a line that was read. */
spill_code_t spill_split_begin_exported(spill_split_t *split, spill_error_t *error);
bool spill_split_next_exported(spill_split_t *split, spill_input_item_t *item);

#endif
