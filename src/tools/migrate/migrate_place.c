/* The place of a pass over many owners. */
#include "tools/migrate/migrate_place.h"

#include "store/job.h"
#include "util/error.h"

/* Owners between two saves. */
enum { SAVED_EVERY = 64 };

#define FIELD(type, member) SPILL_FIELD(type, spill_place_entry_t, member, #member)
static const spill_field_t fields[] = {FIELD(INT64, slots), FIELD(INT64, bytes),
                                       FIELD(BYTES, after)};
static const spill_record_t record = SPILL_RECORD("place", spill_place_entry_t, fields);
static const spill_job_kind_t kind = {.suffix = ":migrate.at",
                                      .activity = "the migration of",
                                      .record = &record,
                                      .named = true,
                                      .stored = offsetof(spill_place_entry_t, stored)};

static void save(spill_migrate_place_t *place)
{
    spill_error_t ignored;
    place->entry.after = (spill_bytes_t){place->reached.data, (uint32_t)place->reached.size};
    spill_code_t code = spill_job_save(&(spill_job_catalog_t){.store = place->store}, &kind,
                                       place->name, &place->entry, &ignored);
    place->unsaved = 0;
    if (code != SPILL_OK)
        spill_migrate_place_stop(place);
}

spill_code_t spill_migrate_place_begin(spill_migrate_place_t *place, spill_store_t *store,
                                       const char *name, int64_t slots, int64_t bytes, bool resumes,
                                       spill_error_t *error)
{
    spill_place_entry_t *entry = &place->entry;
    *place = (spill_migrate_place_t){.store = store, .name = name};
    atomic_init(&place->stores, resumes);
    spill_code_t code =
        spill_job_load(&(spill_job_catalog_t){.store = store}, &kind, name, entry, error);
    if (code != SPILL_OK && code != SPILL_CORRUPT) /* a damaged place is replaced */
        return code;
    place->resumed = resumes && code == SPILL_OK && entry->stored && entry->slots == slots &&
                     entry->bytes == bytes && entry->after.size_bytes > 0;
    entry->slots = slots;
    entry->bytes = bytes;
    return SPILL_OK;
}

void spill_migrate_place_mark(spill_migrate_place_t *place)
{
    if (atomic_load(&place->stores) && !place->entry.stored)
        save(place);
}

void spill_migrate_place_move(const spill_migrate_place_t *place, spill_cursor_t *cursor)
{
    if (!place->resumed)
        return;
    spill_buffer_append(&cursor->after, place->entry.after.data, place->entry.after.size_bytes);
    cursor->query.after = cursor->after.data;
    cursor->query.after_bytes = cursor->after.size;
}

void spill_migrate_place_reach(spill_migrate_place_t *place, int64_t count,
                               const spill_buffer_t *reached)
{
    place->unsaved += count;
    if (!reached || reached->size == 0 || !atomic_load(&place->stores))
        return;
    spill_buffer_clear(&place->reached);
    spill_buffer_append(&place->reached, reached->data, reached->size);
    if (place->unsaved >= SAVED_EVERY)
        save(place);
}

void spill_migrate_place_stop(spill_migrate_place_t *place)
{
    atomic_store(&place->stores, false);
}

spill_code_t spill_migrate_place_end(spill_migrate_place_t *place, bool all, spill_error_t *error)
{
    if (all)
        return place->entry.stored ? spill_migrate_place_delete(place->store, place->name, error)
                                   : SPILL_OK;
    if (atomic_load(&place->stores) && place->unsaved > 0 && place->reached.size > 0)
        save(place);
    return SPILL_OK;
}

void spill_migrate_place_release(spill_migrate_place_t *place)
{
    spill_buffer_release(&place->reached);
    spill_job_release(&kind, &place->entry);
}

spill_code_t spill_migrate_place_delete(spill_store_t *store, const char *name,
                                        spill_error_t *error)
{
    return spill_job_delete(&(spill_job_catalog_t){.store = store}, &kind, name, error);
}
