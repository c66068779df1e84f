/* The version of a store's format: check it, and upgrade an older store. */
#include "store/embedded/embedded.h"

#include "store/embedded/embedded_codec.h"
#include "util/error.h"

#include <spillway/version.h>

#include <inttypes.h>
#include <string.h>

/*
 * Formats:
 *   1  pages by number only
 *   2  also by their first number (SPILL_RECORD_FIRST)
 */
enum { FORMAT_PAGES_BY_FIRST = 2, BATCH_CHANGES = 1000 };

typedef struct upgrade {
    spill_kv_t *kv;
    const char *place;
    spill_kv_iter_t *iter;
    spill_batch_t batch;
} upgrade_t;

static spill_code_t flush(upgrade_t *upgrade, bool sync, spill_error_t *error)
{
    spill_code_t code = upgrade->kv->ops->write(upgrade->kv, &upgrade->batch, sync, error);
    spill_batch_clear(&upgrade->batch);
    return code;
}

static void put_format(spill_batch_t *batch, uint64_t version)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_system_key(&key, SPILL_SYSTEM_FORMAT, "");
    spill_buffer_append_varint(spill_batch_put_open(batch, key.data, key.size), version);
    spill_batch_put_close(batch);
    spill_buffer_release(&key);
}

/* ---- from 1 to 2 ----------------------------------------------------------------------------- */

/*
 * Parse the key of an owner's record in an array. Such a key is longer than its prefix. A key of
 * other fields, which has a collection's id, ends with the owner.
 */
static bool split_key(const spill_kv_iter_t *iter, spill_record_key_t *key)
{
    if (iter->key_bytes <= 4 || memcmp(iter->key, "\0\0\0\0", 4) == 0)
        return false;
    size_t owner = spill_owner_key_length(iter->key + 4, iter->key_bytes - 4);
    if (owner == 0 || owner > SPILL_OWNER_KEY_MAX)
        return false;
    memcpy(key->data, iter->key, 4 + owner);
    key->prefix = 4 + owner;
    key->size = key->prefix;
    return true;
}

static spill_code_t index_page(upgrade_t *upgrade, spill_record_key_t *key, int64_t page,
                               spill_error_t *error)
{
    spill_state_t state = {0};
    bool readable =
        spill_state_decode(upgrade->iter->value, upgrade->iter->value_bytes, false, &state);
    spill_record_key_first(key, state.incarnation, state.first, page);
    spill_state_release(&state);
    if (!readable)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the record of a page cannot be read while the store is upgraded; "
                          "restore a backup, or read it with the release that wrote it",
                          upgrade->place);
    spill_batch_put(&upgrade->batch, key->data, key->size, NULL, 0);
    return SPILL_OK;
}

/* Write the collected changes without an open iterator; then open one at the same position. */
static spill_code_t write_gathered(upgrade_t *upgrade, spill_error_t *error)
{
    spill_buffer_t at = SPILL_BUFFER_INIT;
    spill_buffer_append(&at, upgrade->iter->key, upgrade->iter->key_bytes);
    upgrade->iter->ops->free(upgrade->iter);
    spill_code_t code = flush(upgrade, false, error);
    upgrade->iter = upgrade->kv->ops->iterate(upgrade->kv);
    upgrade->iter->ops->seek(upgrade->iter, at.data, at.size);
    spill_buffer_release(&at);
    return code;
}

/* Index the pages of the iterator's current owner, and move the iterator behind them. */
static spill_code_t index_owner(upgrade_t *upgrade, spill_record_key_t *key, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    int64_t page;
    spill_record_key_kind(key, SPILL_RECORD_PAGE);
    upgrade->iter->ops->seek(upgrade->iter, key->data, key->size);
    while (code == SPILL_OK && upgrade->iter->valid &&
           spill_record_key_is_page(key, upgrade->iter->key, upgrade->iter->key_bytes, &page)) {
        code = index_page(upgrade, key, page, error);
        if (code == SPILL_OK && upgrade->batch.count >= BATCH_CHANGES)
            code = write_gathered(upgrade, error);
        if (code == SPILL_OK && upgrade->iter->valid)
            upgrade->iter->ops->next(upgrade->iter);
    }
    if (code == SPILL_OK && upgrade->iter->valid)
        spill_embedded_pass_owner(upgrade->iter, key);
    return code;
}

/* Index all pages. After a crash it starts again; indexing a page twice does no harm. */
static spill_code_t index_pages(upgrade_t *upgrade, spill_error_t *error)
{
    spill_record_key_t key;
    spill_code_t code = SPILL_OK;
    upgrade->iter->ops->seek(upgrade->iter, (const uint8_t *)"", 0);
    while (code == SPILL_OK && upgrade->iter->valid) {
        if (split_key(upgrade->iter, &key) && key.prefix < upgrade->iter->key_bytes)
            code = index_owner(upgrade, &key, error);
        else
            upgrade->iter->ops->next(upgrade->iter);
    }
    return code == SPILL_OK ? upgrade->iter->ops->status(upgrade->iter, error) : code;
}

static spill_code_t upgrade_format(spill_kv_t *kv, const char *place, uint64_t version,
                                   spill_error_t *error)
{
    upgrade_t upgrade = {.kv = kv, .place = place, .batch = SPILL_BATCH_INIT};
    spill_code_t code = SPILL_OK;
    upgrade.iter = kv->ops->iterate(kv);
    if (version < FORMAT_PAGES_BY_FIRST)
        code = index_pages(&upgrade, error);
    upgrade.iter->ops->free(upgrade.iter);
    if (code == SPILL_OK) {
        put_format(&upgrade.batch, SPILL_FORMAT_VERSION);
        code = flush(&upgrade, true, error);
    }
    spill_batch_release(&upgrade.batch);
    return code;
}

/* ---- the version ----------------------------------------------------------------------------- */

static spill_code_t is_empty(spill_kv_t *kv, bool *empty, spill_error_t *error)
{
    SPILL_SCOPED(spill_kv_iter_release) spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, (const uint8_t *)"", 0);
    *empty = !iter->valid;
    return spill_kv_iter_stop(iter, error);
}

/* *version is 0 if the engine is empty. */
static spill_code_t read_format(spill_kv_t *kv, const char *place, uint64_t *version,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t value = SPILL_BUFFER_INIT;
    bool found, empty;
    *version = 0;
    spill_system_key(&key, SPILL_SYSTEM_FORMAT, "");
    SPILL_TRY(kv->ops->get(kv, key.data, key.size, &value, &found, error));
    if (found) {
        spill_reader_t reader = spill_reader_of(value.data, value.size);
        *version = spill_reader_varint(&reader);
        if (spill_reader_ended(&reader) && *version > 0)
            return SPILL_OK;
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the record of the format's version cannot be read", place);
    }
    SPILL_TRY(is_empty(kv, &empty, error));
    if (!empty)
        return spill_fail(error, SPILL_NOT_FOUND, "%s: is a database, but not a Spillway store",
                          place);
    return SPILL_OK;
}

spill_code_t spill_embedded_format(spill_kv_t *kv, const char *place, bool read_only,
                                   spill_error_t *error)
{
    uint64_t version;
    spill_code_t code = read_format(kv, place, &version, error);
    if (code != SPILL_OK || version == SPILL_FORMAT_VERSION)
        return code;
    if (version > SPILL_FORMAT_VERSION)
        return spill_fail(error, SPILL_FORMAT,
                          "%s: is of format %" PRIu64 "; Spillway %s reads up to format %d: use a "
                          "newer release",
                          place, version, spill_version(), SPILL_FORMAT_VERSION);
    if (read_only && version == 0)
        return spill_fail(error, SPILL_NOT_FOUND, "%s: the store is empty and was never written to",
                          place);
    if (read_only)
        return spill_fail(error, SPILL_FORMAT,
                          "%s: is of format %" PRIu64 ", and Spillway %s writes format %d: open it "
                          "once for writing, which upgrades it",
                          place, version, spill_version(), SPILL_FORMAT_VERSION);
    return upgrade_format(kv, place, version == 0 ? SPILL_FORMAT_VERSION : version, error);
}
