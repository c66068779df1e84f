/* Read a scan's result from a file with the JSON document that json.c writes. */
#include "tools/scan/scan.h"
#include "util/error.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static spill_code_t read_whole(const char *file, bool is_stdin, char **data, size_t *size,
                               spill_error_t *error)
{
    FILE *from = is_stdin ? stdin : fopen(file, "rb");
    size_t capacity = 0, got = 1;
    *data = NULL;
    *size = 0;
    if (!from)
        return spill_fail_errno(error, errno, "%s", file);
    for (; got > 0; *size += got) {
        if (capacity - *size < 65536)
            *data = bson_realloc(*data, capacity = 2 * capacity + 131072);
        got = fread(*data + *size, 1, capacity - *size, from);
    }
    int problem = ferror(from) ? errno : 0;
    if (!is_stdin)
        fclose(from);
    return problem ? spill_fail_errno(error, problem, "%s", file) : SPILL_OK;
}

spill_code_t spill_scan_read_json(const char *file, spill_scan_result_t *result,
                                  spill_error_t *error)
{
    char *data;
    size_t size;
    bson_error_t problem;
    bool is_stdin = strcmp(file, "-") == 0;
    *result = (spill_scan_result_t){0};
    spill_code_t code = read_whole(file, is_stdin, &data, &size, error);
    file = is_stdin ? "stdin" : file;
    if (code == SPILL_OK) {
        bson_t *document = bson_new_from_json((const uint8_t *)data, (ssize_t)size, &problem);
        if (document) {
            code = spill_scan_from_bson(document, result, error);
            bson_destroy(document);
            if (code == SPILL_FORMAT)
                code = spill_fail_prefix(error, SPILL_FORMAT, "%s", file);
            else if (code != SPILL_OK) /* not SPILL_CORRUPT: that is about stored records */
                code = spill_fail_prefix(error, SPILL_PARSE,
                                         "%s: `scan --json` does not write this", file);
        } else {
            code = spill_fail(error, SPILL_PARSE, "%s: %s", file, problem.message);
        }
    }
    bson_free(data);
    if (code == SPILL_OK)
        spill_scan_find(result);
    return code;
}

bool spill_scan_is_json(const char *file)
{
    static const char name[] = "\"spillwayScan\"";
    char head[64] = "";
    struct stat status;
    bool plain = stat(file, &status) == 0 && S_ISREG(status.st_mode); /* a pipe can be read once */
    FILE *from = plain ? fopen(file, "rb") : NULL;
    if (!from)
        return false;
    size_t got = fread(head, 1, sizeof head - 1, from);
    fclose(from);
    head[got] = '\0';
    const char *at = head + strspn(head, " \t\r\n");
    at = *at == '{' ? at + 1 + strspn(at + 1, " \t\r\n") : "";
    return strncmp(at, name, sizeof name - 1) == 0;
}
