/*
 * The lines that `export` writes, as the input of an import: elements with their owners and
 * numbers, or documents (import_exported.h). A pure function for each line.
 */
#ifndef SPILL_TOOLS_IMPORT_IMPORT_EXPORT_LINES_H
#define SPILL_TOOLS_IMPORT_IMPORT_EXPORT_LINES_H

#include <spillway/array.h>
#include <spillway/definition.h>

/* What the lines of an input are. All lines of one input are of the same kind. */
typedef enum spill_export_lines {
    SPILL_EXPORT_NONE,      /* no export, or not known yet */
    SPILL_EXPORT_ELEMENTS,  /* {owner, seq, element} */
    SPILL_EXPORT_WINDOWS,   /* {owner, window, seq, element}, of layout bucket */
    SPILL_EXPORT_DOCUMENTS, /* {collection, document}: heads and pages, with bookkeeping; a head
                               has its definition's names, too (import_names.h) */
    SPILL_EXPORT_PLAIN,     /* the same without it, so the elements have no numbers */
} spill_export_lines_t;

/* A line. Borrows from its document. */
typedef struct spill_export_line {
    spill_value_t owner;
    spill_value_t element;
    int64_t seq;
    const char *window;     /* or NULL */
    const char *collection; /* of DOCUMENTS and PLAIN, as the two following ones */
    spill_value_t document;
    spill_value_t definition; /* its names; no data: none */
} spill_export_line_t;

/*
 * Read a line. *lines: the kind of the lines before, or NONE; it becomes the kind of this line.
 * SPILL_PARSE: this is no line of an export, or one of another kind.
 */
spill_code_t spill_export_line_read(const bson_t *document, spill_export_lines_t *lines,
                                    spill_export_line_t *line, spill_error_t *error);

/*
 * Do elements from such lines keep their numbers? Numbers count within an owner, or with layout
 * bucket within a window. So they fit only an array that counts in the same way.
 */
bool spill_export_lines_numbered(spill_export_lines_t lines, const spill_definition_t *definition,
                                 bool new_numbers);

#endif
