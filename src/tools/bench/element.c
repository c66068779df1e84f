#include "tools/bench/element.h"

#include <assert.h>
#include <bson/bson.h>
#include <string.h>

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Write `size` characters of words. */
static void write_words(char *text, size_t size, uint64_t *random)
{
    static const char *const words[] = {
        "the",    "change",  "was",     "in",    "review", "and",   "test",   "build",
        "merged", "comment", "failed",  "on",    "for",    "a",     "branch", "which",
        "server", "replied", "to",      "of",    "with",   "patch", "new",    "version",
        "after",  "release", "removed", "small", "fixes",  "issue", "again",  "documentation"};
    size_t at = 0;
    while (at < size) {
        const char *word = words[next_random(random) % (sizeof words / sizeof *words)];
        for (; *word != '\0' && at < size; word++)
            text[at++] = *word;
        if (at < size)
            text[at++] = ' ';
    }
}

void spill_bench_element(uint8_t *document, size_t size_bytes, uint64_t number)
{
    static const char *const kinds[] = {"comment", "review", "vote", "merge", "upload"};
    enum { FIXED_BYTES = 4 + (1 + 5 + 4 + 1) + (1 + 6 + 8) + (1 + 3 + 8) + (1 + 5 + 4 + 1) + 1 };
    uint64_t random = number;
    const char *kind = kinds[next_random(&random) % (sizeof kinds / sizeof *kinds)];
    size_t length = size_bytes - FIXED_BYTES - strlen(kind);
    char small[512], *text = length <= sizeof small ? small : bson_malloc(length);
    bson_t element = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&element, "type", kind);
    BSON_APPEND_INT64(&element, "actor", (int64_t)next_random(&random));
    BSON_APPEND_DATE_TIME(&element, "at", INT64_C(1600000000000) + (int64_t)number * 1000);
    write_words(text, length, &random);
    bson_append_utf8(&element, "text", -1, text, (int)length);
    assert(element.len == size_bytes);
    memcpy(document, bson_get_data(&element), size_bytes);
    bson_destroy(&element);
    if (text != small)
        bson_free(text);
}
