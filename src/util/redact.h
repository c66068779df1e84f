/* Texts without the secrets of connection strings. Any thread. */
#ifndef SPILL_UTIL_REDACT_H
#define SPILL_UTIL_REDACT_H

#include <stdbool.h>

/*
 * Of a longer text only the beginning is shown, and "...". To find a secret may take time that
 * grows with the square of the length.
 */
#define SPILL_REDACT_BYTES_MAX 4096

/*
 * Return a copy of the text in which every secret of a connection string is "***". Free it with
 * bson_free.
 *
 * The text may be a connection string, or a message that quotes one or several, correct or
 * misspelt: "MONGODB://", "mongo://", "mongodb:/", "mongodb//", quotes around it, a word before it.
 * A password may contain '@', ':', '/', '%' and blanks: everything from the scheme to the last '@'
 * is replaced. Hence text between a connection string and a later '@' is lost, too.
 * Without a scheme, the PASSWORD of USER:PASSWORD@HOST is replaced, unless HOST is a number. There,
 * a password ends at a blank, a quote or a bracket. An address ADA@HOST without ':' before it
 * stays. The values of options whose names end in "password", "secret" or "token" are replaced as
 * well.
 */
char *spill_redact(const char *text);

/*
 * Does the text have a scheme, and a secret that spill_redact replaces behind it? A path can
 * contain "USER:PASSWORD@HOST/" by chance, so that form alone does not count.
 */
bool spill_resembles_secret_uri(const char *text);

#endif
