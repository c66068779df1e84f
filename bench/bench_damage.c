/*
 * How fast a scan skips damage, compared with undamaged input of the same kind: documents of 1000
 * int32s.
 *
 *      bench_damage [MEGABYTES [ROUNDS]]
 *
 * Each kind of damage is a file of MEGABYTES (16) in $TMPDIR. A megabyte of damage may take at most
 * three times as long as a megabyte of undamaged documents. The benchmark prints that ratio.
 */
#include "measure.h"
#include "tools/scan/scan.h"

#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void put(FILE *to, const void *data, size_t size)
{
    if (fwrite(data, 1, size, to) != size)
        measure_stop("an input cannot be written");
}

static void put_u32(FILE *to, uint32_t value)
{
    value = BSON_UINT32_TO_LE(value);
    put(to, &value, sizeof value);
}

/* Write `count` int32s named a. With `lengths`, each is the number of bytes from it to the end. */
static void put_numbers(FILE *to, uint32_t count, bool lengths)
{
    for (uint32_t i = 0; i < count; i++) {
        put(to,
            "\x10"
            "a",
            3);
        put_u32(to, lengths ? 7 * (count - i) + 4 : i);
    }
}

static void make_sound(FILE *to, size_t bytes)
{
    while ((size_t)ftell(to) < bytes) {
        put_u32(to, 4 + 7 * 1000 + 1);
        put_numbers(to, 1000, false);
        put(to, "", 1);
    }
}

/* Groups of `count` positions that look like starts of documents with one end, where none ends. */
static void make_candidates(FILE *to, size_t bytes, uint32_t count)
{
    put(to, "\xff\xff\xff\xff", 4);
    while ((size_t)ftell(to) < bytes) {
        put_numbers(to, count, true);
        put(to, "\x7e\x7eX\x7e\x7e\x7e", 7);
        put(to, "\x0c\0\0\0\x10", 5);
    }
}

static void make_short_candidates(FILE *to, size_t bytes)
{
    make_candidates(to, bytes, 1000);
}

static void make_long_candidates(FILE *to, size_t bytes)
{
    make_candidates(to, bytes, 100000);
}

/* A length at every byte. */
static void make_ones(FILE *to, size_t bytes)
{
    while ((size_t)ftell(to) < bytes)
        put(to, "\1\1\1\1\1\1\1\1", 8);
}

/* Every second document has lost its length. */
static void make_lost_lengths(FILE *to, size_t bytes)
{
    for (int i = 0; (size_t)ftell(to) < bytes; i++) {
        put_u32(to, i % 3 == 0 ? 0xA0000000 : 4 + 7 * 1000 + 1);
        put_numbers(to, 1000, false);
        put(to, "", 1);
    }
}

static void make_archive_start(FILE *to)
{
    put(to, "\x6d\xe2\x99\x81", 4);
    put(to, "\x05\0\0\0\0\xff\xff\xff\xff", 9);
}

/* Headers of parts, each with the size of all data that follows. */
static void make_heads(FILE *to, size_t bytes)
{
    make_archive_start(to);
    put(to, "\3\0\0\0", 4);
    while ((size_t)ftell(to) < bytes) {
        put(to, "\xff\xff\xff\xff", 4);
        put_u32(to, 900000);
        put(to, "\2db\0\x08\0\0\0abcdefg", 16);
    }
}

typedef struct input {
    const char *name;
    const char *format;
    void (*make)(FILE *to, size_t bytes);
} input_t;

static double seconds_of(const input_t *input, size_t bytes, int rounds)
{
    char path[64];
    double seconds[ROUNDS_MAX];
    int fd = memfd_create(input->name, 0);
    FILE *file = fdopen(dup(fd), "wb");
    input->make(file, bytes);
    if (fclose(file) != 0)
        measure_stop("an input cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int i = 0; i < rounds; i++) {
        spill_scan_options_t options;
        spill_scan_result_t result;
        spill_error_t error;
        spill_scan_options_init(&options);
        options.source = path;
        options.format = input->format;
        options.threads = 1;
        clock_t began = clock();
        measure_check(spill_scan(&options, &result, &error), &error);
        seconds[i] = (double)(clock() - began) / CLOCKS_PER_SEC;
        spill_scan_release(&result);
    }
    close(fd);
    return measure_median(seconds, (size_t)rounds);
}

int main(int argc, char **argv)
{
    static const input_t sound = {"sound", "bson", make_sound};
    static const input_t damaged[] = {{"lost lengths", "bson", make_lost_lengths},
                                      {"short candidates", "bson", make_short_candidates},
                                      {"long candidates", "bson", make_long_candidates},
                                      {"ones", "bson", make_ones},
                                      {"heads of an archive", "archive", make_heads}};
    if (argc > 3)
        measure_stop("usage: bench_damage [MEGABYTES [ROUNDS]]");
    size_t bytes = (size_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 16) * 1000000;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    double best = seconds_of(&sound, bytes, rounds);
    printf("%-22s %8.2f ms/MB\n", sound.name, best * 1e9 / (double)bytes);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        double seconds = seconds_of(&damaged[i], bytes, rounds);
        printf("%-22s %8.2f ms/MB, %.2f of sound\n", damaged[i].name, seconds * 1e9 / (double)bytes,
               seconds / best);
    }
    return 0;
}
