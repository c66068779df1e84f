/*
 * A real history of lists that grow and shrink: 275 832 events add, change and remove versions of
 * software products, many of them repeatedly. The test replays them with removals and edits by id.
 * The resulting lists must equal the source's separate file of final lists, as sets of name and
 * date. Keep oldest, and with SPILLWAY_LONG also keep newest, on the embedded store. Verify must
 * find nothing.
 *
 * Runs if SPILLWAY_DATA names a folder with eol_releases/events.ndjson.gz.
 */
#include "support/effort.h"

#include <spillway/spillway.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

enum { LINE_BYTES_MAX = 4 << 20, BATCH = 100, DOCUMENTS = 403, EVENTS = 275832, SKIPPED = 77 };

typedef struct replay {
    spill_store_t *store;
    spill_array_t *array;
    char *line;
    /* Additions to one product that are not appended yet. */
    char product[256];
    bson_t *added[BATCH];
    size_t count;
    int64_t done[3]; /* added, changed, removed */
} replay_t;

static void check(spill_code_t code, const spill_error_t *error, const char *what)
{
    if (code == SPILL_OK)
        return;
    fprintf(stderr, "FAILED: %s: %s: %s\n", what, spill_code_name(code), error->message);
    exit(EXIT_FAILURE);
}

static void stop(const char *what, const char *detail)
{
    fprintf(stderr, "FAILED: %s: %s\n", what, detail);
    exit(EXIT_FAILURE);
}

static const char *text_of(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, field) || !BSON_ITER_HOLDS_UTF8(&iter))
        stop("a line lacks a field", field);
    return bson_iter_utf8(&iter, NULL);
}

static gzFile open_file(const char *name)
{
    const char *folder = getenv("SPILLWAY_DATA");
    char *path = bson_strdup_printf("%s/eol_releases/%s", folder ? folder : "", name);
    gzFile file = folder && access(path, R_OK) == 0 ? gzopen(path, "rb") : NULL;
    bson_free(path);
    if (!file) {
        fprintf(stderr, "SKIPPED: SPILLWAY_DATA has no eol_releases/%s\n", name);
        exit(SKIPPED);
    }
    return file;
}

/* Returns NULL at the end. */
static bson_t *read_line(gzFile file, char *line)
{
    bson_error_t error;
    if (!gzgets(file, line, LINE_BYTES_MAX))
        return NULL;
    bson_t *document = bson_new_from_json((const uint8_t *)line, -1, &error);
    if (!document)
        stop("libbson", error.message);
    return document;
}

/* ---- the replay ------------------------------------------------------------------------------ */

static spill_value_t owner_of(bson_t *storage, const char *product)
{
    bson_init(storage);
    return spill_value_from_utf8(storage, product);
}

static void add_waiting(replay_t *replay)
{
    spill_value_t elements[BATCH];
    spill_append_result_t result;
    spill_error_t error;
    bson_t storage;
    if (replay->count == 0)
        return;
    for (size_t i = 0; i < replay->count; i++)
        elements[i] = spill_value_from_document(replay->added[i]);
    spill_value_t owner = owner_of(&storage, replay->product);
    check(spill_array_append(replay->array, &owner, elements, replay->count, NULL, &result, &error),
          &error, "append");
    replay->done[0] += result.count;
    for (size_t i = 0; i < replay->count; i++)
        bson_destroy(replay->added[i]);
    replay->count = 0;
    bson_destroy(&storage);
}

static void apply_event(replay_t *replay, const bson_t *event)
{
    const char *product = text_of(event, "product");
    const char *op = text_of(event, "op");
    const char *name = text_of(event, "version");
    bool adds = strcmp(op, "add") == 0;
    if (!adds || replay->count == BATCH || strcmp(product, replay->product) != 0)
        add_waiting(replay);
    snprintf(replay->product, sizeof replay->product, "%s", product);
    if (adds) {
        replay->added[replay->count++] =
            BCON_NEW("name", BCON_UTF8(name), "date", BCON_UTF8(text_of(event, "released")));
        return;
    }
    bson_t owner_storage, id_storage;
    spill_error_t error;
    spill_value_t owner = owner_of(&owner_storage, product);
    spill_value_t id = owner_of(&id_storage, name);
    if (strcmp(op, "del") == 0) {
        check(spill_array_remove_id(replay->array, &owner, &id, NULL, &error), &error, "remove");
        replay->done[2]++;
    } else {
        bson_t *changed =
            BCON_NEW("name", BCON_UTF8(name), "date", BCON_UTF8(text_of(event, "released")));
        spill_value_t element = spill_value_from_document(changed);
        check(spill_array_edit_id(replay->array, &owner, &id, &element, NULL, &error), &error,
              "edit");
        replay->done[1]++;
        bson_destroy(changed);
    }
    bson_destroy(&owner_storage);
    bson_destroy(&id_storage);
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Names with their dates, one string each. */
typedef struct set {
    char **texts;
    size_t count;
    size_t capacity;
} set_t;

static void set_add(set_t *set, const bson_t *version)
{
    if (set->count == set->capacity) {
        set->capacity = set->capacity ? 2 * set->capacity : 64;
        set->texts = bson_realloc(set->texts, set->capacity * sizeof *set->texts);
    }
    set->texts[set->count++] =
        bson_strdup_printf("%s\t%s", text_of(version, "name"), text_of(version, "date"));
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void set_sort(set_t *set)
{
    if (set->count > 0)
        qsort(set->texts, set->count, sizeof *set->texts, compare_texts);
}

static void set_release(set_t *set)
{
    for (size_t i = 0; i < set->count; i++)
        bson_free(set->texts[i]);
    bson_free(set->texts);
    *set = (set_t){0};
}

static bool add_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    bson_t version;
    if (element->value.type != BSON_TYPE_DOCUMENT ||
        !bson_init_static(&version, element->value.data, element->value.size_bytes))
        stop("an element is not a document", "");
    set_add(context, &version);
    return true;
}

static void compare_document(const replay_t *replay, const bson_t *document)
{
    set_t expected = {0}, got = {0};
    bson_iter_t iter, versions;
    const uint8_t *data;
    uint32_t size;
    spill_error_t error;
    const char *product = text_of(document, "_id");
    if (!bson_iter_init_find(&iter, document, "versions") || !bson_iter_recurse(&iter, &versions))
        stop("a document has no versions", product);
    while (bson_iter_next(&versions)) {
        bson_t version;
        bson_iter_document(&versions, &size, &data);
        if (!bson_init_static(&version, data, size))
            stop("a version is not a document", product);
        set_add(&expected, &version);
    }
    bson_t storage;
    spill_value_t owner = owner_of(&storage, product);
    check(spill_array_export(replay->array, &owner, add_element, &got, &error), &error, "export");
    set_sort(&expected);
    set_sort(&got);
    bool same = expected.count == got.count;
    for (size_t i = 0; same && i < got.count; i++)
        same = strcmp(expected.texts[i], got.texts[i]) == 0;
    if (!same)
        stop("the versions differ", product);
    set_release(&expected);
    set_release(&got);
    bson_destroy(&storage);
}

static void compare_all(replay_t *replay)
{
    gzFile file = open_file("products_array.ndjson.gz");
    bson_t *document;
    int documents = 0;
    int64_t elements = 0;
    for (; (document = read_line(file, replay->line)) != NULL; documents++) {
        bson_iter_t iter;
        bson_t versions;
        const uint8_t *data;
        uint32_t size;
        compare_document(replay, document);
        bson_iter_init_find(&iter, document, "versions");
        bson_iter_array(&iter, &size, &data);
        if (bson_init_static(&versions, data, size))
            elements += bson_count_keys(&versions);
        bson_destroy(document);
    }
    gzclose(file);
    if (documents != DOCUMENTS)
        stop("the number of documents is", "not 403");
    /* Deleted products must have no elements left. */
    spill_verify_summary_t summary;
    spill_error_t error;
    check(spill_array_verify(replay->array, NULL, NULL, NULL, &summary, &error), &error, "verify");
    if (summary.findings > 0 || summary.elements != elements)
        stop("verify", summary.findings > 0 ? "it has findings" : "the number of elements differs");
}

/* ---- both keeps ------------------------------------------------------------------------------ */

static int delete_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void open_array(replay_t *replay, const char *folder, spill_keep_t keep)
{
    spill_store_options_t options;
    spill_definition_t definition;
    spill_error_t error;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    check(spill_store_open(folder, &options, &replay->store, &error), &error, "open");
    spill_definition_init(&definition, "versions");
    strcpy(definition.collection, "products");
    strcpy(definition.array, "versions");
    strcpy(definition.id_field, "name");
    definition.keep = keep;
    definition.bounds.threshold = 100;
    definition.bounds.page_capacity = 100;
    check(spill_store_define(replay->store, &definition, &error), &error, "define");
    check(spill_array_open(replay->store, "versions", &replay->array, &error), &error, "open");
}

static void replay_and_compare(spill_keep_t keep)
{
    char folder[] = "/tmp/spillway-data-XXXXXX";
    replay_t replay = {.line = bson_malloc(LINE_BYTES_MAX)};
    gzFile file = open_file("events.ndjson.gz");
    spill_error_t error;
    bson_t *event;
    if (!mkdtemp(folder))
        stop("mkdtemp", folder);
    open_array(&replay, folder, keep);
    while ((event = read_line(file, replay.line)) != NULL) {
        apply_event(&replay, event);
        bson_destroy(event);
    }
    add_waiting(&replay);
    gzclose(file);
    printf("keep %s: %lld added, %lld changed, %lld removed\n",
           keep == SPILL_KEEP_NEWEST ? "newest" : "oldest", (long long)replay.done[0],
           (long long)replay.done[1], (long long)replay.done[2]);
    fflush(stdout);
    if (replay.done[0] + replay.done[1] + replay.done[2] != EVENTS)
        stop("events", "not 275832");
    compare_all(&replay);
    spill_array_close(replay.array);
    check(spill_store_close(replay.store, &error), &error, "close");
    nftw(folder, delete_one, 16, FTW_DEPTH | FTW_PHYS);
    bson_free(replay.line);
}

/* Run both at the same time: they share nothing. */
int main(void)
{
    static const spill_keep_t keeps[] = {SPILL_KEEP_OLDEST, SPILL_KEEP_NEWEST};
    pid_t children[2];
    int count = (int)effort(2, 1, 1);
    gzclose(open_file("events.ndjson.gz")); /* skips the test if there is no such file */
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            replay_and_compare(keeps[i]);
            exit(EXIT_SUCCESS);
        }
    }
    bool good = true;
    for (int i = 0; i < count; i++) {
        int status = 0;
        good = waitpid(children[i], &status, 0) == children[i] && status == 0 && good;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
