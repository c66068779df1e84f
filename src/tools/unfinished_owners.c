/* status --owners: unfinished operations of single owners. */
#include "tools/unfinished_owners.h"

#include "bson/record.h"
#include "bson/value.h"
#include "core/half_done.h"
#include "layout/owner.h"
#include "util/error.h"
#include "util/text.h"

#include <spillway/verify.h>

#include <string.h>

typedef struct looking {
    spill_array_t *array;
    const char *shown;
    spill_status_owner_fn visit;
    void *context;
    int64_t most, count;
    int64_t headless;  /* of these, owners with pages without a head */
    spill_code_t code; /* the first failure */
    spill_error_t error;
} looking_t;

/* Does the head show which operation it is? Then *kind becomes its name. */
static spill_code_t read_head(const spill_owner_t *owner, bool *present, const char **kind,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    *present = head.state.present;
    if (head.state.present && head.state.intent)
        *kind = head.state.intent_edit ? "edit" : "removal";
    return SPILL_OK;
}

/* The owner has no head. Did a migration write its pages? Their lease then shows when. */
static spill_code_t read_lease(const spill_owner_t *owner, spill_status_owner_t *found,
                               spill_error_t *error)
{
    const spill_store_t *store = owner->array->store;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, 0, &page, error));
    found->kind = "pages";
    if (!page.state.present || page.state.lease == 0)
        return SPILL_OK;
    found->kind = "lease";
    found->state = "its document is full, and a migration has copied pages from it and not ended";
    found->began_ms = (page.state.lease - store->adopt_us - store->margin_us) / 1000;
    return SPILL_OK;
}

static spill_code_t classify(const looking_t *looking, const spill_value_t *value,
                             spill_status_owner_t *found, spill_error_t *error)
{
    bool present = true;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, looking->array, value, error));
    spill_code_t code = read_head(&owner, &present, &found->kind, error);
    if (code == SPILL_REFUSED) /* an unmanaged array is in the head's place */
        present = false;
    else if (code != SPILL_OK)
        return code;
    return present ? SPILL_OK : read_lease(&owner, found, error);
}

static char *command_for(const looking_t *looking, const spill_status_owner_t *found)
{
    const char *name = spill_array_get_definition(looking->array)->name;
    SPILL_SCOPED(spill_free_text) char *store = spill_shell_word(looking->shown);
    SPILL_SCOPED(spill_free_text) char *quoted = spill_shell_word(name);
    SPILL_SCOPED(spill_free_text) char *owner = spill_shell_word(found->owner);
    if (strcmp(found->kind, "lease") == 0)
        return bson_strdup_printf("spillway migrate %s %s --execute", store, quoted);
    return bson_strdup_printf("spillway repair %s %s %s", store, quoted, owner);
}

static void look_at_finding(void *context, const spill_finding_t *finding)
{
    looking_t *looking = context;
    if (!finding->owner || looking->code != SPILL_OK)
        return;
    bool shows = looking->count++ < looking->most;
    spill_status_owner_t found = {
        .kind = "operation", .state = finding->text, .began_ms = SPILL_DATE_UNKNOWN};
    looking->code = classify(looking, finding->owner, &found, &looking->error);
    if (looking->code != SPILL_OK)
        return;
    looking->headless += strcmp(found.kind, "pages") == 0 ? 1 : 0;
    if (!shows)
        return;
    SPILL_SCOPED(spill_free_text) char *owner = spill_value_to_json(finding->owner, false);
    found.owner = owner ? owner : "null";
    SPILL_SCOPED(spill_free_text) char *finish = command_for(looking, &found);
    found.finish = finish;
    looking->visit(looking->context, &found);
}

spill_code_t spill_status_owners(spill_array_t *array, const char *shown, int64_t most,
                                 spill_status_owner_fn visit, void *context,
                                 spill_status_owners_t *owners, spill_error_t *error)
{
    looking_t looking = {
        .array = array, .shown = shown, .most = most, .visit = visit, .context = context};
    spill_code_t code = spill_find_half_done(array, look_at_finding, &looking, error);
    *owners = (spill_status_owners_t){.count = looking.count, .headless = looking.headless};
    if (code == SPILL_OK && looking.code != SPILL_OK) {
        code = looking.code;
        if (error)
            *error = looking.error;
    }
    return code;
}
