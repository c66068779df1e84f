#include "support/failing_kv.h"

#include "util/error.h"

#include <bson/bson.h>
#include <string.h>

typedef struct failing_kv {
    spill_kv_t base;
    spill_kv_t *inner;
    failing_kv_plan_t *plan;
} failing_kv_t;

typedef struct failing_iter {
    spill_kv_iter_t base;
    spill_kv_iter_t *inner;
    failing_kv_plan_t *plan;
    bool failed;
} failing_iter_t;

static bool strikes(failing_kv_plan_t *plan)
{
    if (!plan->armed || plan->calls++ != plan->at)
        return false;
    plan->struck = true;
    return true;
}

static spill_code_t fail_read(const failing_kv_plan_t *plan, spill_error_t *error)
{
    bool corrupt = plan->way == FAILING_KV_CORRUPT;
    return spill_fail(error, corrupt ? SPILL_CORRUPT : SPILL_IO, "a test made this read fail");
}

static spill_code_t failing_get(spill_kv_t *base, const uint8_t *key, size_t key_bytes,
                                spill_buffer_t *value, bool *found, spill_error_t *error)
{
    failing_kv_t *kv = (failing_kv_t *)base;
    spill_buffer_clear(value);
    *found = false;
    kv->plan->look_ups++;
    if (strikes(kv->plan))
        return fail_read(kv->plan, error);
    return kv->inner->ops->get(kv->inner, key, key_bytes, value, found, error);
}

static spill_code_t failing_write(spill_kv_t *base, const spill_batch_t *batch, bool sync,
                                  spill_error_t *error)
{
    failing_kv_t *kv = (failing_kv_t *)base;
    if (!strikes(kv->plan))
        return kv->inner->ops->write(kv->inner, batch, sync, error);
    if (kv->plan->way != FAILING_KV_LOST)
        return spill_fail(error, SPILL_IO, "a test made this write fail");
    spill_code_t code = kv->inner->ops->write(kv->inner, batch, sync, error);
    if (code != SPILL_OK)
        return code;
    return spill_fail(error, SPILL_UNKNOWN, "a test lost the answer to this write");
}

static spill_code_t failing_checkpoint(spill_kv_t *base, const char *folder, spill_error_t *error)
{
    failing_kv_t *kv = (failing_kv_t *)base;
    if (strikes(kv->plan))
        return spill_fail(error, SPILL_IO, "a test made this checkpoint fail");
    return kv->inner->ops->checkpoint(kv->inner, folder, error);
}

static spill_code_t failing_close(spill_kv_t *base, spill_error_t *error)
{
    failing_kv_t *kv = (failing_kv_t *)base;
    spill_code_t code = kv->inner->ops->close(kv->inner, error);
    bson_free(kv);
    return code;
}

/* ---- iterators ------------------------------------------------------------------------------- */

static void copy_position(failing_iter_t *iter)
{
    const spill_kv_iter_t *inner = iter->inner;
    iter->base.valid = inner->valid;
    iter->base.key = inner->key;
    iter->base.key_bytes = inner->key_bytes;
    iter->base.value = inner->value;
    iter->base.value_bytes = inner->value_bytes;
}

/* True: the step fails, and the iterator is not valid. */
static bool step_fails(failing_iter_t *iter)
{
    iter->failed = strikes(iter->plan);
    if (iter->failed)
        iter->base.valid = false;
    return iter->failed;
}

static void failing_seek(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    failing_iter_t *iter = (failing_iter_t *)base;
    iter->plan->look_ups++;
    if (step_fails(iter))
        return;
    iter->inner->ops->seek(iter->inner, key, key_bytes);
    copy_position(iter);
}

static void failing_next(spill_kv_iter_t *base)
{
    failing_iter_t *iter = (failing_iter_t *)base;
    iter->plan->steps++;
    if (step_fails(iter))
        return;
    iter->inner->ops->next(iter->inner);
    copy_position(iter);
}

static void failing_seek_before(spill_kv_iter_t *base, const uint8_t *key, size_t key_bytes)
{
    failing_iter_t *iter = (failing_iter_t *)base;
    iter->plan->look_ups++;
    if (step_fails(iter))
        return;
    iter->inner->ops->seek_before(iter->inner, key, key_bytes);
    copy_position(iter);
}

static spill_code_t failing_status(spill_kv_iter_t *base, spill_error_t *error)
{
    failing_iter_t *iter = (failing_iter_t *)base;
    return iter->failed ? fail_read(iter->plan, error)
                        : iter->inner->ops->status(iter->inner, error);
}

static void failing_iter_free(spill_kv_iter_t *base)
{
    failing_iter_t *iter = (failing_iter_t *)base;
    iter->inner->ops->free(iter->inner);
    bson_free(iter);
}

static spill_kv_iter_t *failing_iterate(spill_kv_t *base)
{
    static const spill_kv_iter_ops_t ops = {.seek = failing_seek,
                                            .next = failing_next,
                                            .seek_before = failing_seek_before,
                                            .status = failing_status,
                                            .free = failing_iter_free};
    failing_kv_t *kv = (failing_kv_t *)base;
    failing_iter_t *iter = bson_malloc0(sizeof *iter);
    iter->base.ops = &ops;
    iter->inner = kv->inner->ops->iterate(kv->inner);
    iter->plan = kv->plan;
    return &iter->base;
}

spill_kv_t *failing_kv_open(spill_kv_t *inner, failing_kv_plan_t *plan)
{
    static const spill_kv_ops_t with_files = {.get = failing_get,
                                              .write = failing_write,
                                              .iterate = failing_iterate,
                                              .checkpoint = failing_checkpoint,
                                              .close = failing_close};
    static const spill_kv_ops_t without_files = {.get = failing_get,
                                                 .write = failing_write,
                                                 .iterate = failing_iterate,
                                                 .close = failing_close};
    failing_kv_t *kv = bson_malloc0(sizeof *kv);
    kv->base.ops = inner->ops->checkpoint ? &with_files : &without_files;
    kv->inner = inner;
    kv->plan = plan;
    return &kv->base;
}
