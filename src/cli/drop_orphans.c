/* repair --drop-orphans. */
#include "cli/drop_orphans.h"
#include "cli/cli.h"
#include "core/orphans.h"
#include "util/error.h"
#include "util/text.h"

typedef struct pass {
    bool look_only;
    int64_t owners, pages, deleted, left;
} pass_t;

#define RESULT(member) SPILL_FIELD(INT64, pass_t, member, #member)
static const spill_field_t result_fields[] = {RESULT(owners), RESULT(pages), RESULT(deleted),
                                              RESULT(left)};
static const spill_record_t result_record = SPILL_RECORD("result", pass_t, result_fields);

/* The first pass prints the findings; the second one deletes. */
static spill_code_t drop_in_array(spill_cli_session_t *session, spill_error_t *error)
{
    pass_t *pass = session->context;
    const spill_invocation_t *invocation = session->invocation;
    spill_orphans_summary_t summary;
    spill_code_t code = spill_drop_orphans(session->array, pass->look_only,
                                           pass->look_only ? spill_cli_print_finding : NULL,
                                           (void *)(uintptr_t)invocation, &summary, error);
    pass->owners += summary.owners;
    pass->pages += summary.pages;
    pass->left += summary.left;
    return code;
}

spill_exit_t spill_cli_drop_orphans(const spill_invocation_t *invocation, bool yes)
{
    pass_t found = {.look_only = true}, dropped = {0};
    spill_exit_t result = spill_cli_with_arrays(invocation, SPILL_CLI_READ, drop_in_array, &found);
    if (result == SPILL_EXIT_DONE && !invocation->dry_run && found.owners > 0) {
        if (!yes)
            result = spill_cli_confirm(
                invocation, "Delete %s of %s that no longer exist? Elements in them are lost.",
                spill_counted_text(found.pages, "page", "pages").text,
                spill_counted_text(found.owners, "document", "documents").text);
        if (result == SPILL_EXIT_DONE)
            result = spill_cli_with_arrays(invocation, SPILL_CLI_WRITE, drop_in_array, &dropped);
    }
    if (result != SPILL_EXIT_DONE)
        return result;
    found.deleted = dropped.pages;
    spill_cli_print_result(invocation, &result_record, &found);
    return found.pages > found.deleted || found.left > 0 ? SPILL_EXIT_FOUND : SPILL_EXIT_DONE;
}
