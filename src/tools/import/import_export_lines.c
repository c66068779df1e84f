#include "tools/import/import_export_lines.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <string.h>

static const char *const FORMS[] = {
    [SPILL_EXPORT_ELEMENTS] = "{\"owner\", \"seq\", \"element\"}",
    [SPILL_EXPORT_WINDOWS] = "{\"owner\", \"window\", \"seq\", \"element\"}",
    [SPILL_EXPORT_DOCUMENTS] = "{\"collection\", \"document\"} with bookkeeping",
    [SPILL_EXPORT_PLAIN] = "{\"collection\", \"document\"} without bookkeeping",
};

/* The fields that a line has, as bits. */
enum {
    OWNER = 1,
    WINDOW = 2,
    SEQ = 4,
    ELEMENT = 8,
    COLLECTION = 16,
    DOCUMENT = 32,
    DEFINITION = 64,
    OTHER = 128,
    ALL = OWNER | SEQ | ELEMENT
};

static int read_field(const bson_iter_t *iter, spill_export_line_t *line)
{
    const char *name = bson_iter_key(iter);
    if (strcmp(name, "owner") == 0) {
        line->owner = spill_value_from_iter(iter);
        return OWNER;
    }
    if (strcmp(name, "element") == 0) {
        line->element = spill_value_from_iter(iter);
        return ELEMENT;
    }
    if (strcmp(name, "collection") == 0 && BSON_ITER_HOLDS_UTF8(iter)) {
        line->collection = bson_iter_utf8(iter, NULL);
        return COLLECTION;
    }
    if (strcmp(name, "document") == 0 && BSON_ITER_HOLDS_DOCUMENT(iter)) {
        line->document = spill_value_from_iter(iter);
        return DOCUMENT;
    }
    if (strcmp(name, "definition") == 0 && BSON_ITER_HOLDS_DOCUMENT(iter)) {
        line->definition = spill_value_from_iter(iter);
        return DEFINITION;
    }
    if (strcmp(name, "window") == 0 && BSON_ITER_HOLDS_UTF8(iter)) {
        line->window = bson_iter_utf8(iter, NULL);
        return WINDOW;
    }
    if (strcmp(name, "seq") == 0 && (BSON_ITER_HOLDS_INT32(iter) || BSON_ITER_HOLDS_INT64(iter))) {
        line->seq = bson_iter_as_int64(iter);
        return line->seq >= 0 && line->seq < SPILL_OP_BASE_MAX ? SEQ : OTHER;
    }
    return OTHER;
}

static spill_export_lines_t read_line(const bson_t *document, spill_export_line_t *line)
{
    bson_iter_t iter;
    spill_value_t bookkeeping;
    const char *rest;
    int fields = 0;
    *line = (spill_export_line_t){0};
    if (!bson_iter_init(&iter, document))
        return SPILL_EXPORT_NONE;
    while (bson_iter_next(&iter)) {
        int field = read_field(&iter, line);
        fields |= fields & field ? OTHER : field; /* a name that occurs twice */
    }
    if (fields == ALL)
        return SPILL_EXPORT_ELEMENTS;
    if ((fields & ~DEFINITION) == (COLLECTION | DOCUMENT)) {
        bool plain = !spill_value_field(&line->document, SPILL_STORED_ROOT, &rest, &bookkeeping);
        return plain ? SPILL_EXPORT_PLAIN : SPILL_EXPORT_DOCUMENTS;
    }
    return fields == (ALL | WINDOW) ? SPILL_EXPORT_WINDOWS : SPILL_EXPORT_NONE;
}

spill_code_t spill_export_line_read(const bson_t *document, spill_export_lines_t *lines,
                                    spill_export_line_t *line, spill_error_t *error)
{
    spill_export_lines_t found = read_line(document, line);
    if (found == SPILL_EXPORT_NONE)
        return spill_fail(error, SPILL_PARSE,
                          "this is no line of an export, which has the form %s; for other records, "
                          "name the field of the owner with --owner",
                          FORMS[*lines == SPILL_EXPORT_NONE ? SPILL_EXPORT_ELEMENTS : *lines]);
    if (*lines != SPILL_EXPORT_NONE && found != *lines)
        return spill_fail(error, SPILL_PARSE,
                          "this line has the form %s, and the lines before it %s: import each "
                          "export by itself",
                          FORMS[found], FORMS[*lines]);
    *lines = found;
    return SPILL_OK;
}

bool spill_export_lines_numbered(spill_export_lines_t lines, const spill_definition_t *definition,
                                 bool new_numbers)
{
    spill_export_lines_t needed =
        spill_schema_of(definition)->has_windows ? SPILL_EXPORT_WINDOWS : SPILL_EXPORT_ELEMENTS;
    return !new_numbers && (lines == needed || lines == SPILL_EXPORT_DOCUMENTS);
}
