/* Gateways that share a port: announcements, as names of abstract Unix sockets. */
#include "gateway/relay/shared_port.h"

#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX "spillway-serve/"

enum { LINE_BYTES = 512 };

/* The name is PREFIX, the address, the process and the hash, divided by '/'. */
static int announce(const char *address, uint64_t hash)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, PREFIX "%s/%ld/%016" PRIx64,
                          address, (long)getpid(), hash);
    if (length >= (int)sizeof name.sun_path - 1)
        return -1;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (descriptor >= 0 && bind(descriptor, (struct sockaddr *)&name, bytes) != 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* The process that a line of /proc/net/unix says to serve another database there; 0: none. */
static long find_other(const char *line, const char *address, uint64_t hash)
{
    const char *at = strstr(line, "@" PREFIX);
    size_t length = strlen(address);
    char *end;
    if (!at || strncmp(at += strlen("@" PREFIX), address, length) != 0 || at[length] != '/')
        return 0;
    long process = strtol(at + length + 1, &end, 10);
    if (*end != '/')
        return 0;
    return strtoull(end + 1, NULL, 16) != hash ? process : 0;
}

spill_code_t spill_shared_port_join(const char *address, const char *database, int *descriptor,
                                    spill_error_t *error)
{
    char line[LINE_BYTES];
    long other = 0;
    const uint64_t hash = spill_hash(database, strlen(database));
    *descriptor = announce(address, hash);
    FILE *sockets = *descriptor >= 0 ? fopen("/proc/net/unix", "re") : NULL;
    while (sockets && other == 0 && fgets(line, sizeof line, sockets))
        other = find_other(line, address, hash);
    if (sockets)
        fclose(sockets);
    if (other == 0)
        return SPILL_OK;
    close(*descriptor);
    *descriptor = -1;
    return spill_fail(error, SPILL_REFUSED,
                      "process %ld is a gateway of another database at %s: choose another port, or "
                      "stop that process",
                      other, address);
}
