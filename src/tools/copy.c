#include "tools/copy.h"

#include "core/array.h"
#include "definition/schema.h"
#include "definition/window.h"
#include "tools/transfer/transfer.h"
#include "util/error.h"

typedef struct copying {
    spill_transfer_t transfer;
    bson_t last; /* the owner that was reported last, under an empty name */
    bool last_differs;
    bool last_ahead;
} copying_t;

/* Report whether the previous call had the same owner: the windows of an owner are consecutive. */
static bool is_counted(copying_t *copying, const spill_value_t *owner)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, &copying->last, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(owner, &last))
            return true;
    }
    bson_reinit(&copying->last);
    spill_value_append(owner, &copying->last, "");
    copying->last_differs = false;
    copying->last_ahead = false;
    return false;
}

static void report_difference(copying_t *copying, const spill_copy_difference_t *found)
{
    const spill_copy_options_t *options = copying->transfer.options;
    spill_copy_difference_t difference = *found;
    spill_value_t owner;
    bool window = !copying->transfer.joins_windows &&
                  spill_schema_of(spill_transfer_source(&copying->transfer))->has_windows &&
                  spill_window_split(difference.owner, &owner, &difference.window);
    if (window)
        difference.owner = &owner;
    copying->transfer.result->windows += window;
    copying->transfer.result->owners += !is_counted(copying, difference.owner);
    if (difference.count > 0) {
        copying->transfer.result->differences += !copying->last_differs;
        copying->transfer.result->ahead += difference.ahead && !copying->last_ahead;
        copying->last_ahead = copying->last_ahead || difference.ahead;
        copying->last_differs = true;
        if (options->differs)
            options->differs(options->context, &difference);
    }
    spill_transfer_progress(&copying->transfer);
}

static spill_code_t copy_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    copying_t *copying = context;
    spill_transferred_t transferred;
    SPILL_TRY(spill_transfer_one(&copying->transfer, value, &transferred, error));
    report_difference(copying, &transferred.difference);
    return SPILL_OK;
}

spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error)
{
    copying_t copying = {.transfer = {.source = {.name = "source", .store = source},
                                      .target = {.name = "target", .store = target},
                                      .options = options,
                                      .result = result},
                         .last = BSON_INITIALIZER};
    spill_transfer_t *transfer = &copying.transfer;
    spill_code_t code = spill_transfer_begin(transfer, name, error);
    if (code == SPILL_OK)
        code = (transfer->joins_windows ? spill_each_bucket_owner : spill_each_owner)(
            transfer->source.array, copy_owner, &copying, true, error);
    spill_transfer_end(transfer);
    bson_destroy(&copying.last);
    return code;
}
