/*
 * Run a fuzz target once on each given file, and on each file of each given folder. This is a
 * regression test without a fuzzing engine.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        perror(path);
        return false;
    }
    /* Allocate exactly that size, so that a sanitizer sees a read beyond it. */
    size_t size = (size_t)status.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool whole = data != NULL && fread(data, 1, size, file) == size;
    fclose(file);
    if (whole)
        LLVMFuzzerTestOneInput(data, size);
    else
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    return whole;
}

/* Returns the number of files run, or -1. */
static int run_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        perror(path);
        return -1;
    }
    int count = 0;
    for (struct dirent *entry; count >= 0 && (entry = readdir(folder)) != NULL;) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count = run_file(name) ? count + 1 : -1;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        bool folder = stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode);
        int count = folder ? run_folder(argv[i]) : run_file(argv[i]) ? 1 : -1;
        if (count < 0)
            return 1;
        total += count;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1;
}
