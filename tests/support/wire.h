/*
 * Whole messages of the MongoDB wire protocol on a socket. A message starts with four 32-bit
 * numbers, the least significant byte first: its length with these 16 bytes, its number, the number
 * of the message that it answers, and its kind. For tests: stops the program where memory ends.
 */
#ifndef TESTS_SUPPORT_WIRE_H
#define TESTS_SUPPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One message, in memory that the next one uses again; release it. Starts zeroed. */
typedef struct wire_message {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
} wire_message_t;

void wire_release(wire_message_t *message);
void wire_copy(const wire_message_t *from, wire_message_t *to);

/* Wait for the next message. False when the connection ended, or what came is no message. */
bool wire_receive(int socket, wire_message_t *message);

/* Send the first `size` bytes of it. False when the connection ended. */
bool wire_send(int socket, const wire_message_t *message, size_t size);

/*
 * Make the message the answer to a request with this number: a server's error of that code, with
 * `text`. The message may hold anything before.
 */
void wire_error(wire_message_t *message, uint32_t request, int32_t code, const char *text);

/* The number of a request, and the number of the request that an answer belongs to. */
uint32_t wire_number(const wire_message_t *message);
uint32_t wire_answered(const wire_message_t *message);

/*
 * The name of the command that a request carries ("find"), in `name`, cut to its size; "" for a
 * message that is none, or compressed.
 */
void wire_command(const wire_message_t *message, char *name, size_t name_size);

/* The command with its arguments as JSON, without document sequences; "" as above. Use bson_free.
 */
char *wire_command_text(const wire_message_t *message);

/*
 * Does the driver send the request on its own account? Such are the greetings by which it watches
 * servers, logins, and the end of sessions.
 */
bool wire_is_driver_own(const wire_message_t *message);

#endif
