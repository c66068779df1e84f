#include "support/memory_admin.h"

#include "bson/value.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static memory_admin_t *of(spill_raw_admin_t *base)
{
    return (memory_admin_t *)base;
}

/* Only one call at a time; `before` may make others. */
static memory_admin_t *lock(spill_raw_admin_t *base)
{
    pthread_mutex_lock(&of(base)->lock);
    return of(base);
}

static void unlock(memory_admin_t **memory)
{
    pthread_mutex_unlock(&(*memory)->lock);
}

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "foreign: %s\n", what);
    abort();
}

/* ---- collections ----------------------------------------------------------------------------- */

foreign_collection_t *memory_admin_find(memory_admin_t *memory, const char *name)
{
    for (int i = 0; i < FOREIGN_COLLECTIONS; i++)
        if (memory->collections[i].name && strcmp(memory->collections[i].name, name) == 0)
            return &memory->collections[i];
    return NULL;
}

static foreign_collection_t *make(memory_admin_t *memory, const char *name)
{
    foreign_collection_t *found = memory_admin_find(memory, name);
    for (int i = 0; i < FOREIGN_COLLECTIONS && !found; i++)
        if (!memory->collections[i].name) {
            found = &memory->collections[i];
            *found = (foreign_collection_t){
                .name = bson_strdup(name), .options = bson_new(), .indexes = bson_new()};
        }
    if (!found)
        stop("too many collections");
    return found;
}

static void release(foreign_collection_t *collection)
{
    bson_free(collection->name);
    bson_destroy(collection->options);
    bson_destroy(collection->indexes);
    spill_raw_admin_batch_release(&collection->documents);
    *collection = (foreign_collection_t){0};
}

size_t memory_admin_count(memory_admin_t *memory, const char *collection)
{
    foreign_collection_t *found = memory_admin_find(memory, collection);
    return found ? found->documents.count : 0;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* The value at a field; BSON null where there is none. */
static spill_value_t value_of(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, document, field))
        return spill_value_from_iter(&iter);
    return (spill_value_t){.type = BSON_TYPE_NULL};
}

static bool same(const spill_value_t *left, const spill_value_t *right)
{
    return spill_value_compare(left, right) == 0;
}

/* A filter is FIELD: VALUE, or FIELD: {$nin: [...]}. */
static bool matches(const bson_t *document, const bson_t *filter)
{
    bson_iter_t iter, inner, items;
    if (!filter || !bson_iter_init(&iter, filter) || !bson_iter_next(&iter))
        return true;
    spill_value_t wanted = spill_value_from_iter(&iter);
    spill_value_t value = value_of(document, bson_iter_key(&iter));
    if (!BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &inner) ||
        !bson_iter_find(&inner, "$nin"))
        return same(&value, &wanted);
    if (!bson_iter_recurse(&inner, &items))
        stop("$nin has no array");
    while (bson_iter_next(&items)) {
        wanted = spill_value_from_iter(&items);
        if (same(&value, &wanted))
            return false;
    }
    return true;
}

static int64_t find_id(const spill_raw_admin_batch_t *documents, const spill_value_t *id)
{
    for (size_t i = 0; i < documents->count; i++) {
        spill_value_t other = value_of(documents->documents[i], "_id");
        if (same(&other, id))
            return (int64_t)i;
    }
    return -1;
}

/* Of a unique index: has one of the others, all but `but`, the same keys? */
static bool clashes_by(const foreign_collection_t *collection, const bson_t *index,
                       const bson_t *document, int64_t but)
{
    bson_iter_t keys, partial, field;
    if (!bson_iter_init_find(&keys, index, "unique") || !bson_iter_bool(&keys))
        return false;
    for (size_t i = 0; i < collection->documents.count; i++) {
        const bson_t *other = collection->documents.documents[i];
        bool equal = (int64_t)i != but;
        bson_iter_init_find(&field, index, "key");
        bson_iter_recurse(&field, &keys);
        while (equal && bson_iter_next(&keys)) {
            spill_value_t left = value_of(document, bson_iter_key(&keys));
            spill_value_t right = value_of(other, bson_iter_key(&keys));
            equal = same(&left, &right);
        }
        if (equal && bson_iter_init_find(&field, index, "partialFilterExpression") &&
            bson_iter_recurse(&field, &partial) && bson_iter_next(&partial)) /* {x: {$exists}} */
            equal = bson_has_field(document, bson_iter_key(&partial));
        if (equal)
            return true;
    }
    return false;
}

static bool clashes(const foreign_collection_t *collection, const bson_t *document, int64_t but)
{
    bson_iter_t iter;
    bson_iter_init(&iter, collection->indexes);
    while (bson_iter_next(&iter)) {
        bson_t index;
        spill_value_t value = spill_value_from_iter(&iter);
        bson_init_static(&index, value.data, value.size_bytes);
        if (clashes_by(collection, &index, document, but))
            return true;
    }
    return false;
}

static void take_out(spill_raw_admin_batch_t *documents, int64_t at)
{
    bson_destroy(documents->documents[at]);
    documents->documents[at] = documents->documents[--documents->count];
}

static bool insert(foreign_collection_t *collection, const bson_t *document)
{
    spill_value_t id = value_of(document, "_id");
    if (find_id(&collection->documents, &id) >= 0 || clashes(collection, document, -1))
        return false;
    /* spill_raw_admin_batch_add grows at powers of two: it has to have seen all of them. */
    collection->documents.documents = bson_realloc(
        collection->documents.documents, (2 * collection->documents.count + 2) * sizeof(bson_t *));
    collection->documents.documents[collection->documents.count++] = bson_copy(document);
    return true;
}

static bool replace(foreign_collection_t *collection, int64_t at, const bson_t *document)
{
    if (clashes(collection, document, at))
        return false;
    bson_destroy(collection->documents.documents[at]);
    collection->documents.documents[at] = bson_copy(document);
    return true;
}

bool memory_admin_put(memory_admin_t *memory, const char *collection, const char *json)
{
    bson_error_t error;
    foreign_collection_t *found = make(memory, collection);
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!document)
        stop(error.message);
    spill_value_t id = value_of(document, "_id");
    int64_t at = find_id(&found->documents, &id);
    bool done = at >= 0 ? replace(found, at, document) : insert(found, document);
    bson_destroy(document);
    return done;
}

void memory_admin_delete(memory_admin_t *memory, const char *collection, const char *id_json)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    foreign_collection_t *found = memory_admin_find(memory, collection);
    if (spill_value_from_json(id_json, strlen(id_json), &storage, &id, NULL) != SPILL_OK)
        stop("no JSON");
    int64_t at = found ? find_id(&found->documents, &id) : -1;
    if (at >= 0)
        take_out(&found->documents, at);
    bson_destroy(&storage);
}

static int by_id(const void *left, const void *right)
{
    spill_value_t one = value_of(*(bson_t *const *)left, "_id");
    spill_value_t two = value_of(*(bson_t *const *)right, "_id");
    return spill_value_compare(&one, &two);
}

static void sort(spill_raw_admin_batch_t *documents)
{
    if (documents->count > 1)
        qsort(documents->documents, documents->count, sizeof(bson_t *), by_id);
}

char *memory_admin_text(memory_admin_t *memory, const char *collection)
{
    foreign_collection_t *found = memory_admin_find(memory, collection);
    bson_string_t *text = bson_string_new("");
    if (found)
        sort(&found->documents);
    for (size_t i = 0; found && i < found->documents.count; i++) {
        char *json = bson_as_relaxed_extended_json(found->documents.documents[i], NULL);
        bson_string_append_printf(text, "%s\n", json);
        bson_free(json);
    }
    return bson_string_free(text, false);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Begin a call. False: it fails, and nothing of it is done. */
static bool begin(memory_admin_t *memory, spill_code_t *code, spill_error_t *error)
{
    memory->calls++;
    if (memory->before)
        memory->before(memory);
    *code = SPILL_OK;
    if (memory->fail_for_good && memory->fail_at > 0 && memory->calls > memory->fail_at) {
        *code = spill_fail(error, SPILL_IO, "the program was killed");
        return false;
    }
    if (memory->calls != memory->fail_at)
        return true;
    *code = spill_fail(error, memory->fail_applied ? SPILL_UNKNOWN : SPILL_IO, "call %lld fails",
                       (long long)memory->calls);
    return memory->fail_applied;
}

static bool begin_change(memory_admin_t *memory, spill_code_t *code, spill_error_t *error)
{
    memory->changing = true;
    bool begun = begin(memory, code, error);
    memory->changing = false;
    return begun;
}

static spill_code_t list(spill_raw_admin_t *base, const char *type, bson_t *descriptions,
                         spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    memory_admin_t *memory = of(base);
    spill_code_t code;
    bson_init(descriptions);
    if (!begin(memory, &code, error))
        return code;
    for (int i = 0; i < FOREIGN_COLLECTIONS; i++) {
        const foreign_collection_t *at = &memory->collections[i];
        const char *its_type = at->view ? "view" : "collection";
        if (at->name && (type == NULL || strcmp(type, its_type) == 0))
            BCON_APPEND(descriptions, "0", "{", "name", BCON_UTF8(at->name), "type",
                        BCON_UTF8(its_type), "options", BCON_DOCUMENT(at->options), "}");
    }
    return code;
}

static spill_code_t indexes(spill_raw_admin_t *base, const char *name, bson_t *found,
                            spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_init(found);
    if (!begin(of(base), &code, error))
        return code;
    foreign_collection_t *collection = memory_admin_find(of(base), name);
    if (collection)
        bson_concat(found, collection->indexes);
    return code;
}

/* They are put into a collection of that name. */
static spill_code_t definitions(spill_raw_admin_t *base, bson_t *found, spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_init(found);
    if (!begin(of(base), &code, error))
        return code;
    foreign_collection_t *stored = memory_admin_find(of(base), "spillway.definitions");
    for (size_t i = 0; stored && i < stored->documents.count; i++)
        BSON_APPEND_DOCUMENT(found, "0", stored->documents.documents[i]);
    return code;
}

static int64_t count(spill_raw_admin_t *base, const char *name)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    return (int64_t)memory_admin_count(of(base), name);
}

static bool is_wanted(const spill_raw_admin_read_t *what, const bson_t *document)
{
    spill_value_t id = value_of(document, "_id");
    bson_iter_t iter;
    if (!matches(document, what->filter))
        return false;
    if (what->after && spill_value_compare(&id, what->after) <= 0)
        return false;
    if (!what->ids)
        return true;
    bson_iter_init(&iter, what->ids);
    while (bson_iter_next(&iter)) {
        spill_value_t one = spill_value_from_iter(&iter);
        if (same(&one, &id))
            return true;
    }
    return false;
}

static spill_code_t read_documents(spill_raw_admin_t *base, const spill_raw_admin_read_t *what,
                                   spill_raw_admin_batch_t *batch, spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    *batch = (spill_raw_admin_batch_t){.end = true};
    if (!begin(of(base), &code, error))
        return code;
    foreign_collection_t *found = memory_admin_find(of(base), what->collection);
    if (found)
        sort(&found->documents);
    for (size_t i = 0; found && i < found->documents.count; i++) {
        const bson_t *document = found->documents.documents[i];
        if (!is_wanted(what, document))
            continue;
        if (what->limit > 0 && (int64_t)batch->count == what->limit) {
            batch->end = false;
            break;
        }
        bson_t only = BSON_INITIALIZER;
        spill_value_t id = value_of(document, "_id");
        spill_value_append(&id, &only, "_id");
        spill_raw_admin_batch_add(batch, what->ids_only ? &only : document);
        bson_destroy(&only);
    }
    return code;
}

static spill_code_t write_documents(spill_raw_admin_t *base, const char *name,
                                    spill_raw_admin_write_t *writes, size_t write_count,
                                    spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    if (!begin_change(of(base), &code, error))
        return code;
    foreign_collection_t *collection = make(of(base), name);
    for (size_t i = 0; i < write_count; i++) {
        spill_raw_admin_write_t *write = &writes[i];
        write->duplicate = false;
        if (write->kind == SPILL_RAW_ADMIN_INSERT) {
            write->duplicate = !insert(collection, write->document);
            continue;
        }
        int64_t at = find_id(&collection->documents, &write->id);
        if (at < 0 || !matches(collection->documents.documents[at], write->filter))
            continue;
        if (write->kind == SPILL_RAW_ADMIN_DELETE)
            take_out(&collection->documents, at);
        else
            write->duplicate = !replace(collection, at, write->document);
    }
    return code;
}

/* Add an index to an array of them, unless it is there. */
static void add_index(bson_t *indexes, const bson_iter_t *index)
{
    bson_iter_t iter;
    char buffer[16];
    const char *key;
    spill_value_t wanted = spill_value_from_iter(index);
    bson_iter_init(&iter, indexes);
    while (bson_iter_next(&iter)) {
        spill_value_t value = spill_value_from_iter(&iter);
        if (spill_value_equal(&value, &wanted))
            return;
    }
    bson_uint32_to_string(bson_count_keys(indexes), &key, buffer, sizeof buffer);
    bson_append_iter(indexes, key, -1, index);
}

static spill_code_t create(spill_raw_admin_t *base, const char *name, const bson_t *made,
                           spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    if (!begin(of(base), &code, error))
        return code;
    foreign_collection_t *collection = make(of(base), name);
    bson_iter_t iter;
    bson_iter_init(&iter, made);
    while (bson_iter_next(&iter))
        add_index(collection->indexes, &iter);
    return code;
}

static spill_code_t create_view(spill_raw_admin_t *base, const char *name, const char *on,
                                const bson_t *pipeline, spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    if (!begin(of(base), &code, error))
        return code;
    if (memory_admin_find(of(base), name))
        return spill_fail(error, SPILL_IO, "%s exists", name);
    foreign_collection_t *view = make(of(base), name);
    if (of(base)->no_views)
        return code;
    view->view = true;
    BSON_APPEND_UTF8(view->options, "viewOn", on);
    BSON_APPEND_ARRAY(view->options, "pipeline", pipeline);
    return code;
}

static spill_code_t rename_collection(spill_raw_admin_t *base, const char *from, const char *to,
                                      spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    if (!begin_change(of(base), &code, error))
        return code;
    foreign_collection_t *collection = memory_admin_find(of(base), from);
    if (!collection || collection->view || memory_admin_find(of(base), to))
        return spill_fail(error, SPILL_IO, "%s cannot become %s", from, to);
    bson_free(collection->name);
    collection->name = bson_strdup(to);
    return code;
}

static spill_code_t drop(spill_raw_admin_t *base, const char *name, spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    if (!begin_change(of(base), &code, error))
        return code;
    foreign_collection_t *collection = memory_admin_find(of(base), name);
    if (collection)
        release(collection);
    return code;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int64_t find_checkpoint(memory_admin_t *memory, const char *name, bson_t *entry)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id = spill_value_from_utf8(&storage, name);
    int64_t at = find_id(&memory->marks.documents, &id);
    if (at >= 0) {
        spill_value_t value = value_of(memory->marks.documents.documents[at], "entry");
        bson_init_static(entry, value.data, value.size_bytes);
    }
    bson_destroy(&storage);
    return at;
}

static spill_code_t checkpoint_get(spill_raw_admin_t *base, const char *name, bson_t **document,
                                   spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_t entry;
    *document = NULL;
    if (!begin(of(base), &code, error) || code != SPILL_OK)
        return code;
    if (find_checkpoint(of(base), name, &entry) >= 0)
        *document = bson_copy(&entry);
    return code;
}

static spill_code_t checkpoints_get(spill_raw_admin_t *base, const char *const names[2],
                                    bson_t *documents[2], spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_t entry;
    documents[0] = documents[1] = NULL;
    if (!begin(of(base), &code, error) || code != SPILL_OK)
        return code;
    for (int i = 0; i < 2; i++)
        if (find_checkpoint(of(base), names[i], &entry) >= 0)
            documents[i] = bson_copy(&entry);
    return code;
}

static spill_code_t checkpoint_put(spill_raw_admin_t *base, const char *name,
                                   const bson_t *expected, const bson_t *document, bool *done,
                                   spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_t entry;
    *done = false;
    if (!begin(of(base), &code, error))
        return code;
    int64_t at = find_checkpoint(of(base), name, &entry);
    *done = expected ? at >= 0 && bson_equal(&entry, expected) : at < 0;
    if (*done && at >= 0)
        take_out(&of(base)->marks.documents, at);
    if (*done) {
        bson_t *made = BCON_NEW("_id", BCON_UTF8(name), "entry", BCON_DOCUMENT(document));
        insert(&of(base)->marks, made);
        bson_destroy(made);
    }
    return code;
}

static spill_code_t checkpoint_delete(spill_raw_admin_t *base, const char *name,
                                      spill_error_t *error)
{
    SPILL_SCOPED(unlock) memory_admin_t *locked = lock(base);
    (void)locked;
    spill_code_t code;
    bson_t entry;
    if (!begin(of(base), &code, error))
        return code;
    int64_t at = find_checkpoint(of(base), name, &entry);
    if (at >= 0)
        take_out(&of(base)->marks.documents, at);
    return code;
}

static void close_memory(spill_raw_admin_t *base)
{
    for (int i = 0; i < FOREIGN_COLLECTIONS; i++)
        if (of(base)->collections[i].name)
            release(&of(base)->collections[i]);
    release(&of(base)->marks);
    pthread_mutex_destroy(&of(base)->lock);
    bson_free(base);
}

static const spill_raw_admin_ops_t memory_ops = {.list = list,
                                                 .definitions = definitions,
                                                 .indexes = indexes,
                                                 .count = count,
                                                 .read = read_documents,
                                                 .write = write_documents,
                                                 .create = create,
                                                 .create_view = create_view,
                                                 .rename = rename_collection,
                                                 .drop = drop,
                                                 .checkpoint_get = checkpoint_get,
                                                 .checkpoints_get = checkpoints_get,
                                                 .checkpoint_put = checkpoint_put,
                                                 .checkpoint_delete = checkpoint_delete,
                                                 .close = close_memory};

memory_admin_t *memory_admin_new(void)
{
    static char place[] = "memory/test";
    memory_admin_t *memory = bson_malloc0(sizeof *memory);
    memory->base = (spill_raw_admin_t){.ops = &memory_ops, .place = place};
    memory->marks.indexes = bson_new();
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&memory->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return memory;
}
