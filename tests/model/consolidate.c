#include "model/consolidate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PLAN                                                                                       \
    "{\"into\": \"messages\", \"field\": \"room\", \"ids\": \"%s\", \"pattern\": \"m_*\", "        \
    "\"indexes\": [{\"key\": {\"room\": 1, \"at\": -1}}], \"collections\": ["                      \
    "{\"collection\": \"m_a\", \"value\": \"a\"}, {\"collection\": \"m_b\", \"value\": \"b\"}, "   \
    "{\"collection\": \"m_c\", \"value\": 3}]}"

void read_group(world_t *world, const char *ids)
{
    char text[1024];
    snprintf(text, sizeof text, PLAN, ids);
    bson_t *document = bson_new_from_json((const uint8_t *)text, -1, NULL);
    assert_non_null(document);
    assert_int_equal(spill_consolidation_read(document, &world->group, &world->error), SPILL_OK);
    bson_destroy(document);
}

/* Create three collections; with `compound` ids, two documents have the same _id. */
void world_open(world_t *world, const char *ids)
{
    *world = (world_t){.memory = memory_admin_new()};
    world->admin = &world->memory->base;
    world->options.throttle.chunk_first = world->options.throttle.chunk_max = 2;
    read_group(world, ids);
    for (int i = 0; i < 5; i++) {
        char text[96];
        snprintf(text, sizeof text, "{\"_id\": %d, \"text\": \"a%d\", \"at\": %d}", i, i, i);
        memory_admin_put(world->memory, "m_a", text);
        snprintf(text, sizeof text, "{\"_id\": %d, \"text\": \"b%d\", \"at\": %d}",
                 strcmp(ids, "keep") == 0 ? 100 + i : i, i, i);
        memory_admin_put(world->memory, "m_b", text);
    }
    memory_admin_put(world->memory, "m_c", "{\"_id\": {\"x\": 1}, \"of\": [1, 2]}");
    memory_admin_put(world->memory, "m_c", "{\"_id\": \"word\"}");
}

void world_close(world_t *world)
{
    spill_consolidation_release(&world->group);
    spill_raw_admin_close(world->admin);
}

spill_code_t world_run(world_t *world, step_fn step)
{
    return step(world->admin, &world->group, &world->options, &world->result, &world->error);
}

void assert_done(world_t *world, step_fn step)
{
    spill_code_t code = world_run(world, step);
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), world->error.message);
    assert_int_equal(world->result.changing, 0);
}

void assert_refused(world_t *world, step_fn step, const char *text)
{
    assert_int_equal(world_run(world, step), SPILL_REFUSED);
    if (!strstr(world->error.message, text))
        fail_msg("'%s' does not say '%s'", world->error.message, text);
}

picture_t picture_of(world_t *world, bool kept)
{
    picture_t picture;
    for (size_t i = 0; i < 3; i++)
        picture.texts[i] =
            memory_admin_text(world->memory, kept ? world->group.members[i].kept
                                                  : world->group.members[i].collection);
    picture.texts[3] = memory_admin_text(world->memory, "messages");
    return picture;
}

void picture_release(picture_t *picture)
{
    for (int i = 0; i < 4; i++)
        bson_free(picture->texts[i]);
}

void assert_same_picture(const picture_t *left, const picture_t *right, int count)
{
    for (int i = 0; i < count; i++)
        assert_string_equal(left->texts[i], right->texts[i]);
}

bool world_has(world_t *world, const char *name)
{
    return memory_admin_find(world->memory, name) != NULL;
}
/* Run steps by name, so that a failing call may be in any of them. */
spill_code_t world_run_to(world_t *world, const char *steps)
{
    spill_code_t code = SPILL_OK;
    for (const char *at = steps; *at != '\0' && code == SPILL_OK; at++) {
        step_fn step = *at == 'c'   ? spill_consolidate_copy
                       : *at == 'o' ? spill_consolidate_cut_over
                       : *at == 'f' ? spill_consolidate_finish
                                    : spill_consolidate_undo;
        code = world_run(world, step);
        if (code == SPILL_OK)
            assert_int_equal(world->result.changing, 0);
    }
    return code;
}

/* The status has this text. */
void assert_says(world_t *world, const char *wanted)
{
    bson_t report;
    assert_int_equal(spill_consolidate_report(world->admin, &world->group, &report, &world->error),
                     SPILL_OK);
    char *text = bson_as_relaxed_extended_json(&report, NULL);
    if (!strstr(text, wanted))
        fail_msg("%s does not say '%s'", text, wanted);
    bson_free(text);
    bson_destroy(&report);
}

void assert_joint(world_t *world, bool kept)
{
    size_t transformed_documents = 0;
    for (size_t i = 0; i < world->group.count; i++) {
        const spill_joined_t *member = &world->group.members[i];
        foreign_collection_t *old =
            memory_admin_find(world->memory, kept ? member->kept : member->collection);
        foreign_collection_t *joint = memory_admin_find(world->memory, "messages");
        spill_share_t slice = spill_consolidation_share(&world->group, i);
        for (size_t j = 0; old && j < old->documents.count; j++, transformed_documents++) {
            bson_t transformed;
            bool found = false;
            assert_int_equal(
                spill_transform_make(&slice, old->documents.documents[j], &transformed, NULL),
                SPILL_OK);
            for (size_t k = 0; k < joint->documents.count; k++)
                found = found || bson_equal(joint->documents.documents[k], &transformed);
            assert_true(found);
            bson_destroy(&transformed);
        }
    }
    assert_int_equal(transformed_documents, memory_admin_count(world->memory, "messages"));
}

static int64_t call_clock_now_us(void *context)
{
    const call_clock_t *clock = context;
    bool aside = clock->aside_us > 0 && world_has(clock->world, "spillway_kept_m_a");
    return clock->world->memory->calls * (aside ? clock->aside_us : clock->call_us);
}

void set_call_clock(world_t *world, call_clock_t *clock)
{
    clock->world = world;
    world->options.throttle.clock = (spill_clock_t){.now_us = call_clock_now_us, .context = clock};
    world->options.pause_s = 1;
}
