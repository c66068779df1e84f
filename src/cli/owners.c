/* owners: list every owner with the size of its array. */
#include "cli/cli.h"
#include "cli/process.h"
#include "tools/definition_jobs.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>

typedef struct owners_options {
    const char *prefix;
    int64_t limit;
    bool no_newest;
} owners_options_t;

static const owners_options_t DEFAULTS = {.limit = INT64_MAX};

#define TOTALS(type, member, name) SPILL_FIELD(type, spill_owner_totals_t, member, name)
static const spill_field_t totals_fields[] = {
    TOTALS(VALUE, owner, "owner"), TOTALS(INT64, elements, "elements"),
    TOTALS(INT64, bytes, "bytes"), TOTALS(DATE, newest_ms, "newest")};
static const spill_record_t totals_record =
    SPILL_RECORD("owner", spill_owner_totals_t, totals_fields);

typedef struct listing {
    const spill_invocation_t *invocation;
    int64_t printed;
} listing_t;

static bool print_owner(void *context, const spill_owner_totals_t *totals)
{
    listing_t *listing = context;
    const owners_options_t *options = listing->invocation->options;
    if (listing->invocation->json) {
        spill_cli_print_record(&totals_record, totals);
    } else {
        if (listing->printed == 0)
            puts("  elements        bytes  newest                owner");
        printf("%10" PRId64 " %12" PRId64 "  %-20s  ", totals->elements, totals->bytes,
               totals->newest_ms == SPILL_DATE_UNKNOWN ? "-"
                                                       : spill_time_text(totals->newest_ms).text);
        spill_cli_print_value(&totals->owner, false);
        putchar('\n');
    }
    listing->printed++;
    return listing->printed < options->limit && !spill_cli_interrupted();
}

static spill_code_t list_owners(spill_cli_session_t *session, spill_error_t *error)
{
    const owners_options_t *options = session->invocation->options;
    listing_t listing = {.invocation = session->invocation};
    spill_cli_stop_on_interrupt(session->store);
    spill_cli_stop_without_reader();
    int64_t skipped;
    spill_code_t code = spill_stats_owners(session->array, options->prefix, !options->no_newest,
                                           print_owner, &listing, &skipped, error);
    session->found = skipped > 0;
    if ((code == SPILL_OK || code == SPILL_CANCELLED) && spill_cli_interrupted())
        return spill_fail(error, SPILL_CANCELLED,
                          "interrupted after %s: the same command starts again with the first "
                          "owner; --prefix and --limit list a part",
                          spill_counted_text(listing.printed, "owner", "owners").text);
    SPILL_TRY(code);
    if (listing.printed == 0 && !session->invocation->json && !session->invocation->quiet)
        fputs(options->prefix ? "no owner begins with this text\n" : "there is no owner\n", stderr);
    return SPILL_OK;
}

static spill_exit_t run_owners(const spill_invocation_t *invocation)
{
    const owners_options_t *options = invocation->options;
    if (options->limit == 0)
        return spill_cli_usage(invocation, "--limit must be at least 1");
    return spill_cli_with_array(invocation, SPILL_CLI_READ, list_owners);
}

static const spill_option_t OPTIONS[] = {
    {"prefix", "TEXT", SPILL_OPTION_TEXT, offsetof(owners_options_t, prefix),
     "Only owners that begin with this text: strings, and ObjectIds by their digits"},
    {"limit", "N", SPILL_OPTION_NUMBER, offsetof(owners_options_t, limit),
     "Stop after N owners (all)"},
    {"no-newest", NULL, SPILL_OPTION_FLAG, offsetof(owners_options_t, no_newest),
     "Do not find the latest times, so that no element is read"},
    {0}};

const spill_command_t spill_command_owners = {
    .name = "owners",
    .arguments = "STORE NAME",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "List every owner with the size of its array",
    .text = "For each owner, in the store's order: the number of elements, the bytes of their "
            "values, and the latest time of an element, if the definition has a --time-field. With "
            "layout bucket, all windows of an owner together. With --json a line is {\"owner\": "
            "..., \"elements\": n, \"bytes\": n, \"newest\": {\"$date\": ...} or null}.\n"
            "\n"
            "Heads and pages know how many elements they have, so these are not read, except: to "
            "find the latest times, with layouts reference and subset, and with --partial. Memory "
            "does not grow with their number.\n"
            "\n"
            "Examples:\n"
            "  spillway owners feeds.db events\n"
            "  spillway owners feeds.db events --prefix user-1 --limit 100\n"
            "  spillway owners feeds.db events --json | jq -s 'sort_by(-.bytes)[:20]'",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_PARTIAL,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_owners};
