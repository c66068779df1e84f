#include "mongo/relocated.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 128 };

/* Is it "f", or a path in it? */
static bool is_array(const char *path)
{
    return path[0] == 'f' && (path[1] == '\0' || path[1] == '.');
}

static const char *rename_path(const char *path, char renamed[NAME_SIZE])
{
    bool expression = path[0] == '$' && is_array(path + 1);
    if (!expression && !is_array(path))
        return path;
    snprintf(renamed, NAME_SIZE, "%sh.%s", expression ? "$" : "", path + expression);
    return renamed;
}

static void append_value(const bson_iter_t *field, const char *key, bool stored, bson_t *out);

/* `stored`: the document is one that the server stores, so F becomes a field of h. */
static void append_fields(bson_iter_t *field, bool names, bool stored, bson_t *out)
{
    while (bson_iter_next(field)) {
        char renamed[NAME_SIZE];
        bson_t around;
        const char *key = bson_iter_key(field);
        if (stored && strcmp(key, "f") == 0) {
            BSON_APPEND_DOCUMENT_BEGIN(out, "h", &around);
            append_value(field, key, false, &around);
            bson_append_document_end(out, &around);
        } else {
            append_value(field, names && !stored ? rename_path(key, renamed) : key, false, out);
        }
    }
}

/* Is the field a document that is stored as it is? */
static bool is_replacement(const bson_iter_t *field)
{
    static const char *const names[] = {"u", "update", "$replaceWith"};
    bson_iter_t child;
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &child) ||
        !bson_iter_next(&child) || bson_iter_key(&child)[0] == '$')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(bson_iter_key(field), names[i]) == 0)
            return true;
    return false;
}

/* The documents of an insert. */
static void append_documents(const bson_iter_t *list, bson_t *out)
{
    bson_iter_t each, field;
    bson_t made, document;
    BSON_APPEND_ARRAY_BEGIN(out, bson_iter_key(list), &made);
    if (bson_iter_recurse(list, &each))
        while (bson_iter_next(&each)) {
            bson_append_document_begin(&made, bson_iter_key(&each), -1, &document);
            if (bson_iter_recurse(&each, &field))
                append_fields(&field, true, true, &document);
            bson_append_document_end(&made, &document);
        }
    bson_append_array_end(out, &made);
}

static void append_value(const bson_iter_t *field, const char *key, bool stored, bson_t *out)
{
    char renamed[NAME_SIZE];
    bson_iter_t child;
    bson_t inner;
    if (BSON_ITER_HOLDS_ARRAY(field) && strcmp(key, "documents") == 0) {
        append_documents(field, out);
    } else if (BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &child)) {
        bson_append_document_begin(out, key, -1, &inner);
        append_fields(&child, true, stored || is_replacement(field), &inner);
        bson_append_document_end(out, &inner);
    } else if (BSON_ITER_HOLDS_ARRAY(field) && bson_iter_recurse(field, &child)) {
        bson_append_array_begin(out, key, -1, &inner);
        append_fields(&child, false, false, &inner);
        bson_append_array_end(out, &inner);
    } else if (BSON_ITER_HOLDS_UTF8(field)) {
        bson_append_utf8(out, key, -1, rename_path(bson_iter_utf8(field, NULL), renamed), -1);
    } else {
        bson_append_iter(out, key, -1, field);
    }
}

bson_t *relocated_command(const bson_t *command)
{
    bson_iter_t field;
    bson_t *made = bson_new();
    if (bson_iter_init(&field, command))
        append_fields(&field, true, false, made);
    return made;
}
