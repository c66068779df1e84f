/*
 * The documents that `export --documents` writes: each head, followed by its pages. The fields must
 * have the names that the target's definition gives them, so the export of another definition is
 * refused. A document without one of these names is refused even if its line has no names.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_EXPORTED_H
#define SPILL_TOOLS_IMPORT_IMPORT_EXPORTED_H

#include "bson/value.h"
#include "tools/import/import_export_lines.h"

#include <spillway/definition.h>

/* What a document holds, besides its elements. Borrows from the document. */
typedef struct spill_exported {
    spill_value_t owner;
    const char *window; /* layout bucket; else NULL */
    bool is_head;
    int64_t page;           /* a page with bookkeeping: its number; otherwise -1 */
    bool is_newest;         /* a head that keeps the newest elements; its pages follow it */
    spill_value_t elements; /* an array; no data: none */
    spill_value_t element;  /* the only element of a document; no data: none */
    bson_t memory;          /* of the element */

    int64_t pages;          /* a head: how many pages it counts; -1: no bookkeeping */
    int64_t first;          /* the first number of the document */
    int64_t watermark;      /* a head: lower numbers of it and its pages were trimmed */
    int64_t next;           /* number of the next element; -1: the documents have no numbers */
    spill_fields_t deleted; /* the numbers of removed elements, ascending */
    bool gaps;              /* these are pairs: first, length */
    int64_t deleted_first, deleted_end;
} spill_exported_t;

/*
 * Read the document of a line of `lines`, DOCUMENTS or PLAIN. SPILL_PARSE: it is no head or page of
 * the definition. Initializes *exported in every case; release it before the next read. O(fields).
 */
spill_code_t spill_exported_read(const spill_definition_t *definition, spill_export_lines_t lines,
                                 const spill_export_line_t *line, spill_exported_t *exported,
                                 spill_error_t *error);
void spill_exported_release(spill_exported_t *exported);

/* The number of the next element in the order of numbers, or -1. */
int64_t spill_exported_number(spill_exported_t *exported);

/*
 * Append to `set` the fields of a head that are not the array's, each under its path. SPILL_PARSE:
 * a head cannot have such a field.
 */
spill_code_t spill_exported_fields(const spill_definition_t *definition,
                                   const spill_definition_t *stored, size_t stored_count,
                                   const spill_value_t *document, bson_t *set,
                                   spill_error_t *error);

#endif
