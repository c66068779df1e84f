#include "wire_client.h"

#include "measure.h"

#include "gateway/relay/wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int wire_connect(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, made = socket(AF_INET, SOCK_STREAM, 0);
    if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address) != 0)
        measure_stop("nothing listens on port %s", port);
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

static void read_all(int socket, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t part = recv(socket, bytes, size, 0);
        if (part <= 0)
            measure_stop("the connection broke");
        bytes += part;
        size -= (size_t)part;
    }
}

void wire_call(int socket, const bson_t *body, bson_t *reply)
{
    uint8_t head[SPILL_WIRE_HEADER_BYTES];
    spill_wire_header_t header;
    spill_wire_message_t message;
    spill_error_t error;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_wire_write(&bytes, 1, 0, 0, body, NULL, 0);
    if (send(socket, bytes.data, bytes.size, 0) != (ssize_t)bytes.size)
        measure_stop("the connection broke");
    read_all(socket, head, sizeof head);
    measure_check(spill_wire_read_header(head, INT32_MAX, &header, &error), &error);
    spill_buffer_clear(&bytes);
    spill_buffer_append(&bytes, head, sizeof head);
    spill_buffer_reserve(&bytes, (size_t)header.length - sizeof head);
    read_all(socket, bytes.data + bytes.size, (size_t)header.length - sizeof head);
    measure_check(spill_wire_read(bytes.data, (size_t)header.length, &message, &error), &error);
    bson_copy_to(&message.body, reply);
    if (wire_number(reply, "ok") != 1 || bson_has_field(reply, "writeErrors"))
        measure_stop("%s", bson_as_relaxed_extended_json(reply, NULL));
    spill_buffer_release(&bytes);
}

int64_t wire_number(const bson_t *reply, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, field) ? bson_iter_as_int64(&iter) : 0;
}

double wire_processor_us(int process)
{
    clockid_t clock;
    struct timespec used;
    if (process <= 0 || clock_getcpuclockid(process, &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1000;
}
