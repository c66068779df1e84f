/* The contract on the embedded store: on disk and on the engine in memory. */
#include "contract.h"

#include "store/embedded/embedded.h"
#include "support/disk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static spill_store_t *must(spill_code_t code, spill_store_t *store, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fprintf(stderr, "%s\n", error->message);
    assert(code == SPILL_OK);
    return store;
}

/* ---- on disk --------------------------------------------------------------------------------- */

static char folder[] = "/tmp/spillway-contract-XXXXXX";

static spill_store_t *open_folder(void)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_code_t code = spill_store_open(folder, &options, &store, &error);
    return must(code, store, &error);
}

static void close_store(spill_store_t *store)
{
    spill_error_t error;
    spill_code_t code = spill_store_close(store, &error);
    must(code, NULL, &error);
}

static spill_store_t *open_new_folder(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    char *made = mkdtemp(folder);
    assert(made);
    (void)made;
    return open_folder();
}

static spill_store_t *reopen_folder(spill_store_t *store)
{
    close_store(store);
    return open_folder();
}

static void close_folder(spill_store_t *store)
{
    close_store(store);
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    int status = system(command);
    assert(status == 0);
    (void)status;
}

/* ---- in memory ------------------------------------------------------------------------------- */

static disk_t *disk;

static spill_store_t *open_disk(void)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.cache_bytes = (int64_t)24 * 1024; /* so small that the tail cache evicts entries */
    spill_kv_t *kv = disk_open(disk);
    spill_code_t code = spill_embedded_open_kv(kv, "memory", &options, &store, &error);
    return must(code, store, &error);
}

static spill_store_t *open_new_disk(void)
{
    disk = disk_new();
    return open_disk();
}

static spill_store_t *reopen_disk(spill_store_t *store)
{
    close_store(store);
    disk_crash(disk, 0);
    return open_disk();
}

static void close_disk(spill_store_t *store)
{
    close_store(store);
    disk_free(disk);
}

int main(void)
{
    static const contract_kind_t on_disk = {.name = "embedded",
                                            .open = open_new_folder,
                                            .reopen = reopen_folder,
                                            .close = close_folder};
    static const contract_kind_t in_memory = {.name = "embedded, engine in memory",
                                              .open = open_new_disk,
                                              .reopen = reopen_disk,
                                              .close = close_disk};
    int failed = contract_run(&in_memory);
    return contract_run(&on_disk) + failed;
}
