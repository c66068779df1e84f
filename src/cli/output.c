/* What goes to stdout. */
#include "cli/cli.h"

#include "util/error.h"

#include <errno.h>

void spill_cli_print_value(const spill_value_t *value, bool canonical)
{
    char *json = spill_value_to_json(value, canonical);
    fputs(json ? json : "null", stdout);
    bson_free(json);
}

void spill_cli_print_document(const bson_t *document, bool canonical)
{
    char *json = canonical ? bson_as_canonical_extended_json(document, NULL)
                           : bson_as_relaxed_extended_json(document, NULL);
    puts(json ? json : "null");
    bson_free(json);
}

void spill_cli_print_text(const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_utf8(&storage, text);
    spill_cli_print_value(&value, false);
    bson_destroy(&storage);
}

spill_code_t spill_cli_flush(spill_error_t *error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return SPILL_OK;
    }
    return spill_fail_errno(error, errno ? errno : EIO, "cannot write the output");
}
