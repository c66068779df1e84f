/* Error codes as text, and the one place where error objects are filled. */
#include "util/error.h"

#include "util/redact.h"

#include <spillway/version.h>

#include <bson/bson.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct code_entry {
    const char *name;
    const char *text;
} code_entry_t;

static const code_entry_t codes[] = {
#define CODE_ENTRY(name, text) {#name, text},
    SPILL_CODES(CODE_ENTRY)
#undef CODE_ENTRY
};

static const code_entry_t *find_code(spill_code_t code)
{
    static const code_entry_t none = {"UNDEFINED", "no such code"};
    size_t index = (size_t)code;
    return index < sizeof codes / sizeof codes[0] ? &codes[index] : &none;
}

const char *spill_code_name(spill_code_t code)
{
    return find_code(code)->name;
}

const char *spill_code_text(spill_code_t code)
{
    return find_code(code)->text;
}

const char *spill_version(void)
{
    return SPILL_VERSION;
}

/*
 * Format a message without the secrets of connection strings. The whole text is formatted before it
 * is cut to size, because a secret whose end was cut off cannot be recognized.
 */
static void format_message(char message[SPILL_ERROR_MESSAGE_SIZE], const char *format,
                           va_list arguments) __attribute__((format(printf, 2, 0)));

static void format_message(char message[SPILL_ERROR_MESSAGE_SIZE], const char *format,
                           va_list arguments)
{
    char *whole = bson_strdupv_printf(format, arguments);
    char *shown = spill_redact(whole);
    bson_strncpy(message, shown, SPILL_ERROR_MESSAGE_SIZE);
    bson_free(shown);
    bson_free(whole);
}

/* Format the message in a separate buffer: an argument may be the current message. */
static void fill(spill_error_t *error, spill_code_t code, int native, bool retryable,
                 const char *format, va_list arguments) __attribute__((format(printf, 5, 0)));

static void fill(spill_error_t *error, spill_code_t code, int native, bool retryable,
                 const char *format, va_list arguments)
{
    char message[SPILL_ERROR_MESSAGE_SIZE];
    if (error == NULL)
        return;
    format_message(message, format, arguments);
    error->code = code;
    error->native = native;
    error->retryable = retryable;
    error->reason = SPILL_REASON_NONE;
    memset(error->reserved, 0, sizeof error->reserved);
    memcpy(error->message, message, sizeof message);
}

void spill_free_text(char **text)
{
    bson_free(*text);
}

void spill_free_document(bson_t **document)
{
    bson_destroy(*document);
}

spill_code_t spill_fail(spill_error_t *error, spill_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, 0, false, format, arguments);
    va_end(arguments);
    return code;
}

spill_code_t spill_fail_retryable(spill_error_t *error, spill_code_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, 0, true, format, arguments);
    va_end(arguments);
    return code;
}

spill_code_t spill_fail_because(spill_error_t *error, spill_code_t code, spill_reason_t reason)
{
    if (error != NULL)
        error->reason = reason;
    return code;
}

/* Put ": text" after the message, as much of it as fits. */
static void append_text(char message[SPILL_ERROR_MESSAGE_SIZE], const char *text)
{
    strncat(message, ": ", SPILL_ERROR_MESSAGE_SIZE - 1 - strlen(message));
    strncat(message, text, SPILL_ERROR_MESSAGE_SIZE - 1 - strlen(message));
}

static spill_code_t code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* a limit of the process */
        return SPILL_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return SPILL_DENIED;
    case ENOENT:
        return SPILL_NOT_FOUND;
    case ENOMEM:
        return SPILL_NO_MEMORY;
    default:
        return SPILL_IO;
    }
}

spill_code_t spill_fail_errno(spill_error_t *error, int errno_value, const char *format, ...)
{
    spill_code_t code = code_of_errno(errno_value);
    if (error == NULL)
        return code;
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, errno_value, false, format, arguments);
    va_end(arguments);

    char text[128];
    append_text(error->message, strerror_r(errno_value, text, sizeof text));
    return code;
}

spill_code_t spill_fail_prefix(spill_error_t *error, spill_code_t code, const char *format, ...)
{
    if (error == NULL)
        return code;
    char message[SPILL_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    format_message(message, format, arguments);
    va_end(arguments);

    append_text(message, error->message);
    memcpy(error->message, message, sizeof message);
    error->code = code;
    return code;
}

/* ---- arguments of public functions ----------------------------------------------------------- */

spill_code_t spill_check_pointers(const void *const *pointers, size_t count, const char *function,
                                  const char *names, spill_error_t *error)
{
    size_t at = 0;
    while (at < count && pointers[at] != NULL)
        at++;
    if (at == count)
        return SPILL_OK;
    for (size_t i = 0; i < at; i++) {
        names += strcspn(names, ", ");
        names += strspn(names, ", ");
    }
    return spill_fail(error, SPILL_INVALID, "%s: the argument '%.*s' is NULL", function,
                      (int)strcspn(names, ", "), names);
}
