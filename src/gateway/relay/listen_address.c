/* Addresses to listen on. */
#include "gateway/relay/listen_address.h"

#include "util/error.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_BYTES = 256 };

static spill_code_t fail_form(const char *text, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "--listen '%s' must be ADDRESS[:PORT] or [IPV6]:PORT, such as "
                      "127.0.0.1:27018, with a port from 0 to 65535",
                      text);
}

/* Split it; *port stays NULL if the text has none. False: it has another form. */
static bool split(const char *text, char host[HOST_BYTES], const char **port)
{
    const char *end = strrchr(text, ':');
    *port = NULL;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (!close || (close[1] != '\0' && close[1] != ':'))
            return false;
        end = close[1] == ':' ? close + 1 : NULL;
        snprintf(host, HOST_BYTES, "%.*s", (int)(close - text - 1), text + 1);
    } else if (end && strchr(text, ':') != end) {
        end = NULL; /* several colons: an IPv6 address without a port */
        snprintf(host, HOST_BYTES, "%s", text);
    } else {
        snprintf(host, HOST_BYTES, "%.*s", (int)(end ? end - text : (long)strlen(text)), text);
    }
    if (end)
        *port = end + 1;
    return host[0] != '\0';
}

/* Only digits, up to 65535: getaddrinfo would take a larger number modulo 65536. */
static bool is_port(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= 5 && strspn(text, "0123456789") == length &&
           strtol(text, NULL, 10) <= UINT16_MAX;
}

spill_code_t spill_listen_address_read(const char *text, uint16_t default_port,
                                       struct sockaddr_storage *address, spill_error_t *error)
{
    char host[HOST_BYTES], number[8];
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    memset(address, 0, sizeof *address);
    if (strlen(text) >= HOST_BYTES || !split(text, host, &port))
        return fail_form(text, error);
    /* A number alone is meant as a port; getaddrinfo would take it for the address 0.0.x.y. */
    if ((port && !is_port(port)) || strspn(host, "0123456789") == strlen(host))
        return fail_form(text, error);
    snprintf(number, sizeof number, "%u", (unsigned)default_port);
    int failed = getaddrinfo(host, port ? port : number, &hints, &found);
    if (failed != 0)
        return spill_fail(error, SPILL_INVALID, "--listen '%s': the address is unknown: %s", text,
                          gai_strerror(failed));
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return SPILL_OK;
}

void spill_listen_address_print(const struct sockaddr_storage *address,
                                char text[SPILL_ADDRESS_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(text, SPILL_ADDRESS_TEXT_BYTES, "[%s]:%u", host, (unsigned)ntohs(six->sin6_port));
        return;
    }
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    snprintf(text, SPILL_ADDRESS_TEXT_BYTES, "%s:%u", host, (unsigned)ntohs(four->sin_port));
}
