/* The client's rights on heads and pages, tried on its own connection. */
#include "gateway/translate/translation.h"

#include "definition/stored_names.h"
#include "util/clock.h"
#include "util/error.h"

enum { RIGHTS = 3, SLOTS = 8, SECONDS = 60 };

typedef struct known {
    const spill_served_collection_t *at;
    int64_t until[RIGHTS]; /* seconds of the monotonic clock */
} known_t;

/* The collections that the connection has used last. */
struct spill_rights {
    known_t known[SLOTS];
    size_t next;
};

spill_rights_t *spill_rights_new(void)
{
    return bson_malloc0(sizeof(spill_rights_t));
}

void spill_rights_free(spill_rights_t *rights)
{
    bson_free(rights);
}

static known_t *find_known(spill_rights_t *rights, const spill_served_collection_t *at)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (rights->known[i].at == at)
            return &rights->known[i];
    known_t *known = &rights->known[rights->next++ % SLOTS];
    *known = (known_t){.at = at};
    return known;
}

/* A command that needs the right and changes nothing: its filter is {_id: {$in: []}}. */
static bson_t *make_probe(spill_right_t right, const char *collection)
{
    bson_t *nothing = BCON_NEW("_id", "{", "$in", "[", "]", "}");
    bson_t *probe = NULL;
    switch (right) {
    case SPILL_RIGHT_FIND:
        probe = BCON_NEW("find", BCON_UTF8(collection), "filter", BCON_DOCUMENT(nothing), "limit",
                         BCON_INT64(1), "singleBatch", BCON_BOOL(true));
        break;
    case SPILL_RIGHT_UPDATE:
        probe = BCON_NEW("update", BCON_UTF8(collection), "updates", "[", "{", "q",
                         BCON_DOCUMENT(nothing), "u", "{", "$set", "{", SPILL_STORED_ROOT,
                         BCON_INT32(0), "}", "}", "}", "]");
        break;
    case SPILL_RIGHT_DELETE:
        probe = BCON_NEW("delete", BCON_UTF8(collection), "deletes", "[", "{", "q",
                         BCON_DOCUMENT(nothing), "limit", BCON_INT32(1), "}", "]");
        break;
    }
    bson_destroy(nothing);
    return probe;
}

/* A write error of the probe is a refusal, too. */
static bool keep_write_error(spill_translation_t *translation, const bson_t *reply)
{
    bson_iter_t iter, errors;
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "writeErrors.0.errmsg", &errors) ||
        !BSON_ITER_HOLDS_UTF8(&errors))
        return true;
    return spill_translation_fail(translation, SPILL_SERVER_UNAUTHORIZED, "%s",
                                  bson_iter_utf8(&errors, NULL));
}

static bool probe(spill_translation_t *translation, spill_right_t right, const char *collection)
{
    bson_t reply;
    bson_t *command = make_probe(right, collection);
    spill_translation_finish_step(translation, command);
    bool allowed = spill_translation_call(translation, command, &reply);
    bson_destroy(command);
    if (!allowed)
        return false;
    allowed = keep_write_error(translation, &reply);
    bson_destroy(&reply);
    return allowed;
}

bool spill_translation_probe(spill_translation_t *translation, spill_right_t right,
                             const spill_definition_t *definition)
{
    return probe(translation, right, definition->collection) &&
           probe(translation, right, definition->page_collection);
}

bool spill_translation_require(spill_translation_t *translation, spill_right_t right)
{
    spill_rights_t *rights = translation->connection->rights;
    known_t *known = rights != NULL ? find_known(rights, translation->at) : NULL;
    int64_t now = spill_clock_monotonic_s();
    if (known != NULL && now < known->until[right])
        return true;
    if (!spill_translation_probe(translation, right, translation->at->definition))
        return false;
    if (known != NULL)
        known->until[right] = now + SECONDS;
    return true;
}
