#include "server_processor.h"

#include "measure.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64 };

typedef struct process {
    int id, parent;
    double seconds;
} process_t;

/* Read a process. False: it has ended. Its own threads and its ended children count. */
static bool read_process(int id, process_t *process)
{
    char path[64], text[1024];
    long long ticks[4];
    snprintf(path, sizeof path, "/proc/%d/stat", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld",
                        &process->parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 5)
        return false;
    process->id = id;
    process->seconds =
        (double)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* Is it one of the server's processes, or below one of them? */
static bool is_of_server(const process_t *process, const int *roots, int count)
{
    process_t at = *process;
    for (int depth = 0; depth < 8 && at.id > 1; depth++) {
        for (int i = 0; i < count; i++)
            if (at.id == roots[i])
                return true;
        if (!read_process(at.parent, &at))
            return false;
    }
    return false;
}

/* Read the ids in HOME/NAME.pid; with `process`, only that one. */
static int read_roots(const char *home, const char *process, int roots[PROCESSES_MAX])
{
    int count = 0;
    DIR *entries = opendir(home);
    if (!entries)
        measure_stop("%s: cannot be read", home);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[512];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".pid") != 0 || count == PROCESSES_MAX)
            continue;
        size_t length = (size_t)(dot - entry->d_name);
        if (process && (strlen(process) != length || memcmp(process, entry->d_name, length) != 0))
            continue;
        snprintf(path, sizeof path, "%s/%s", home, entry->d_name);
        FILE *file = fopen(path, "r");
        count += file && fscanf(file, "%d", &roots[count]) == 1;
        if (file)
            fclose(file);
    }
    closedir(entries);
    return count;
}

double server_processor(const char *home, const char *process)
{
    int roots[PROCESSES_MAX];
    double sum = 0;
    if (!home)
        return 0;
    int count = read_roots(home, process, roots);
    DIR *entries = opendir("/proc");
    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        process_t one;
        int id = atoi(entry->d_name);
        if (id > 0 && read_process(id, &one) && is_of_server(&one, roots, count))
            sum += one.seconds;
    }
    if (entries)
        closedir(entries);
    return sum;
}
