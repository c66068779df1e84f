/* The listing of a folder fails before its end: no caller takes the first files for all. */
#include "store/embedded/folder.h"
#include "store/embedded/logs.h"
#include "tools/scan/document_source.h"

#include <bson/bson.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int left = INT32_MAX; /* entries until the listing fails */

/* In place of libc's. */
struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (left-- > 0)
        return real(folder);
    errno = EIO;
    return NULL;
}

static const char *const FILES[] = {"SPILLWAY", "CURRENT", "000007.log", "000009.log"};
enum { FILE_COUNT = sizeof FILES / sizeof *FILES };

static void make_folder(char *folder)
{
    char path[96];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < FILE_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, FILES[i]);
        int file = open(path, O_CREAT | O_WRONLY, 0600);
        assert_true(file >= 0);
        close(file);
    }
}

static void ignore_missing(void *context, const char *path, const char *text)
{
    (void)context;
    (void)path;
    (void)text;
}

/* What the callers make of the folder, if its listing fails after `entries`. */
static void expect(const char *folder, int entries, spill_code_t code)
{
    spill_folder_kind_t kind;
    spill_pinned_t *pinned = NULL;
    spill_scan_inputs_t inputs = {0};
    spill_error_t error;
    uint64_t *logs = NULL;
    size_t count;
    left = entries;
    assert_int_equal(spill_folder_look(folder, &kind, &error), code);
    left = entries;
    assert_int_equal(spill_log_numbers(folder, 0, &logs, &count, &error), code);
    if (code == SPILL_OK)
        assert_int_equal(count, 2);
    bson_free(logs);
    if (code != SPILL_OK) { /* otherwise it is neither a store nor a dump */
        left = entries;
        assert_int_equal(spill_pinned_open(folder, &pinned, &error), code);
        assert_non_null(strstr(error.message, strerror(EIO)));
        spill_pinned_free(pinned);
        left = entries;
        assert_int_equal(spill_scan_inputs(folder, "bson", &inputs, ignore_missing, NULL, &error),
                         code);
        spill_scan_inputs_release(&inputs);
    }
    left = INT32_MAX;
}

static void failed_listing_is_an_error(void **state)
{
    (void)state;
    char folder[] = "/tmp/spillway-unlisted-XXXXXX";
    make_folder(folder);
    expect(folder, INT32_MAX, SPILL_OK);
    for (int entries = 0; entries < FILE_COUNT + 2; entries++)
        expect(folder, entries, SPILL_IO);
    spill_folder_remove(folder);
    assert_int_equal(access(folder, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_listing_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
