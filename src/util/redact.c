/* Find the secrets in connection strings, also in misspelt ones. */
#include "util/redact.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define MASK "***"

static bool is_blank(char c)
{
    return c == '\0' || isspace((unsigned char)c);
}

/* Does a word end here? Messages put quotes, brackets and commas around what they quote. */
static bool ends_word(char c)
{
    return is_blank(c) || strchr("'\"`<>()", c) != NULL;
}

static bool is_scheme_character(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

static bool has_mongo(const char *text, size_t length)
{
    for (size_t i = 0; i + 5 <= length; i++)
        if (strncasecmp(text + i, "mongo", 5) == 0)
            return true;
    return false;
}

/* The text before a user's name and password. */
typedef struct anchor {
    size_t length;  /* of the scheme, the colon and the slashes; 0: no anchor */
    bool certain;   /* the scheme is MongoDB's, or nearly */
    bool two_marks; /* it has "//" */
} anchor_t;

/* The anchor at a word's first character: "mongodb://", "mongodb:", "mongodb//", "x://", "//". */
static anchor_t anchor_at(const char *text)
{
    anchor_t anchor = {0};
    size_t scheme = 0;
    while (is_scheme_character(text[scheme]))
        scheme++;
    size_t colons = strspn(text + scheme, ":");
    size_t slashes = strspn(text + scheme + colons, "/\\");
    anchor.certain = has_mongo(text, scheme);
    anchor.two_marks = slashes > 1;
    const char *rest = text + scheme + colons + slashes;
    size_t port = strspn(rest, "0123456789"); /* a host may be called "mongo" */
    bool is_host = slashes == 0 && port > 0 && (ends_word(rest[port]) || strchr("/:,", rest[port]));
    bool found = (slashes > 1 && (colons > 0 || scheme == 0 || anchor.certain)) ||
                 (colons > 0 && slashes > 0) ||
                 (anchor.certain && colons > 0 && !ends_word(*rest) && !is_host);
    anchor.length = found ? scheme + colons + slashes : 0;
    return anchor;
}

/* The end of the text that belongs to an anchor: the next "scheme://". */
static const char *end_of_segment(const char *start)
{
    const char *end = start + strlen(start);
    const char *next = strstr(start, "://");
    if (!next)
        return end;
    while (next > start && is_scheme_character(next[-1]))
        next--;
    return next;
}

/* The last '@' in [start, end) that a host can follow; NULL: there is none. */
static const char *last_at(const char *start, const char *end)
{
    for (const char *at = end; at > start; at--)
        if (at[-1] == '@' && at - 1 > start && !is_blank(at[-2]) && !is_blank(at[0]))
            return at - 1;
    return NULL;
}

/*
 * Without an '@': the first character behind a colon that no port follows, as in "user:password"
 * if the rest was cut off. NULL: all colons have ports, or there are none.
 */
static const char *after_user(const char *start, const char *end)
{
    bool in_address = false; /* [::1] */
    for (const char *at = start; at < end && !ends_word(*at) && *at != '/' && *at != '?'; at++) {
        in_address = *at == '[' || (in_address && *at != ']');
        if (*at != ':' || in_address || ends_word(at[1]))
            continue;
        size_t port = strncmp(at + 1, "PORT", 4) == 0 ? 4 : strspn(at + 1, "0123456789");
        char next = at[1 + port];
        if (!ends_word(next) && !strchr(",/?:.;", next))
            return at + 1;
    }
    return NULL;
}

/* The secret part of the text behind an anchor. */
typedef struct secret {
    const char *from;
    const char *to; /* NULL: no secret */
} secret_t;

static secret_t secret_behind(const char *start, anchor_t anchor)
{
    const char *end = end_of_segment(start);
    const char *at = last_at(start, end);
    secret_t secret = {start, NULL};
    bool user_and_password = at && memchr(start, ':', (size_t)(at - start));
    bool in_authority = at && (size_t)(at - start) < strcspn(start, "/? \t\r\n'\"");
    if (at && (anchor.certain || user_and_password || (anchor.two_marks && in_authority))) {
        secret.to = at;
        return secret;
    }
    const char *password = anchor.certain || anchor.two_marks ? after_user(start, end) : NULL;
    if (!password)
        return secret;
    const char *stray = memchr(password, '@', (size_t)(end - password));
    secret.from = stray ? start : password;
    secret.to = stray ? stray : password + strcspn(password, " \t\r\n'\"");
    return secret;
}

/* Does a scheme begin behind the word's first character, as in "SPILLWAY_URI=mongodb://"? */
static bool has_inner_scheme(const char *word, const char *end)
{
    for (const char *at = word + 1; at < end; at++) {
        anchor_t anchor = {0};
        if (!is_scheme_character(at[-1]) && is_scheme_character(*at))
            anchor = anchor_at(at);
        if (anchor.length > 0 && (anchor.certain || anchor.two_marks))
            return true;
    }
    return false;
}

/* The last '@' in [word, end); NULL: there is none. */
static const char *last_at_of_word(const char *word, const char *end)
{
    while (end > word && end[-1] != '@')
        end--;
    return end > word ? end - 1 : NULL;
}

/*
 * Without a scheme: USER:PASSWORD@HOST. `word` is the start of a word. A number is no host:
 * programs give operations of appends as ID@BASE.
 */
static secret_t secret_of_word(const char *word)
{
    const char *end = word;
    if (strncmp(word, "rocksdb:", 8) == 0) /* a scheme, not a user */
        return (secret_t){word, NULL};
    while (!ends_word(*end))
        end++;
    const char *at = last_at_of_word(word, end);
    const char *colon = at ? memchr(word, ':', (size_t)(at - word)) : NULL;
    secret_t secret = {word, NULL};
    if (!colon || colon + 1 == at || has_inner_scheme(word, at))
        return secret;
    size_t digits = strspn(at + 1, "0123456789");
    if (digits > 0 && at + 1 + digits == end)
        return secret;
    secret.from = colon + 1;
    secret.to = at;
    return secret;
}

/* "tlsCertificateKeyFilePassword=SECRET": the length of the name and its sign, 0 if it is none. */
static size_t secret_option(const char *text)
{
    static const char *const names[] = {"password", "passwd", "pwd", "secret", "token"};
    if (!strchr("pPsStT", *text))
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(text, names[i], length) == 0 &&
            (text[length] == '=' || (text[length] == ':' && strcmp(names[i], "token") == 0)) &&
            !ends_word(text[length + 1]))
            return length + 1;
    }
    return 0;
}

/* Append the text up to `to`, with the secret masked. Returns where to continue. */
static const char *put_masked(spill_buffer_t *to, const char *at, secret_t secret)
{
    spill_buffer_append(to, at, (size_t)(secret.from - at));
    spill_buffer_append(to, MASK, strlen(MASK));
    return secret.to;
}

/* The secret at this position, if it is a word's first character. */
static secret_t secret_at(const char *at, bool word_begins, bool *has_scheme)
{
    secret_t secret = {at, NULL};
    size_t option = secret_option(at);
    *has_scheme = false;
    if (option > 0) {
        secret.from = at + option;
        secret.to = secret.from;
        while (!ends_word(*secret.to) && *secret.to != '&' && *secret.to != ',')
            secret.to++;
        return secret;
    }
    if (!word_begins)
        return secret;
    anchor_t anchor = anchor_at(at);
    if (anchor.length == 0)
        return secret_of_word(at);
    secret = secret_behind(at + anchor.length, anchor);
    *has_scheme = secret.to != NULL;
    return secret;
}

/* Decode "%3A", "%40" and "%2F", which may separate the parts of a misspelt connection string. */
static char *decode_separators(const char *text)
{
    static const struct {
        const char *code;
        char separator;
    } codes[] = {{"%3a", ':'}, {"%40", '@'}, {"%2f", '/'}};
    char *decoded = bson_strdup(text);
    char *to = decoded;
    for (const char *at = text; *at; to++) {
        size_t i = 0;
        while (i < sizeof codes / sizeof *codes && strncasecmp(at, codes[i].code, 3) != 0)
            i++;
        bool is_code = i < sizeof codes / sizeof *codes;
        *to = is_code ? codes[i].separator : *at;
        at += is_code ? 3 : 1;
    }
    *to = '\0';
    return decoded;
}

/* *found: the result has a mask. *has_scheme: a scheme precedes a masked secret. */
static char *redact_plain(const char *text, bool *found, bool *has_scheme)
{
    spill_buffer_t shown = SPILL_BUFFER_INIT;
    bool word_begins = true, schemed = false;
    *has_scheme = false;
    *found = false;
    for (const char *at = text; *at;) {
        secret_t secret = secret_at(at, word_begins, &schemed);
        *has_scheme = *has_scheme || schemed;
        if (secret.to) {
            *found = true;
            at = put_masked(&shown, at, secret);
            word_begins = false;
            continue;
        }
        word_begins = !is_scheme_character(*at);
        spill_buffer_append_byte(&shown, (uint8_t)*at++);
    }
    spill_buffer_append_byte(&shown, '\0');
    return (char *)shown.data;
}

/* If only the text with decoded separators has a secret, return that text, masked. */
static char *redact(const char *text, bool *has_scheme)
{
    bool found;
    char *shown = redact_plain(text, &found, has_scheme);
    if (found || !strchr(text, '%'))
        return shown;
    char *decoded = decode_separators(text);
    char *masked = redact_plain(decoded, &found, has_scheme);
    bson_free(decoded);
    bson_free(found ? shown : masked);
    return found ? masked : shown;
}

/*
 * The beginning of a long text. A secret in it may end behind it, with an '@' that redact would not
 * see. If there is one, the beginning ends before the first character that can precede a secret.
 */
static char *beginning_of(const char *text)
{
    char *beginning = bson_strndup(text, SPILL_REDACT_BYTES_MAX);
    const char *rest = text + SPILL_REDACT_BYTES_MAX;
    size_t shown = strchr(rest, '@') ? strcspn(beginning, ":/\\=") + 1 : SPILL_REDACT_BYTES_MAX;
    if (shown < SPILL_REDACT_BYTES_MAX)
        beginning[shown] = '\0';
    char *redacted = spill_redact(beginning);
    char *whole =
        bson_strdup_printf("%s%s...", redacted, shown < SPILL_REDACT_BYTES_MAX ? MASK : "");
    bson_free(redacted);
    bson_free(beginning);
    return whole;
}

char *spill_redact(const char *text)
{
    bool has_scheme;
    if (strnlen(text, SPILL_REDACT_BYTES_MAX + 1) > SPILL_REDACT_BYTES_MAX)
        return beginning_of(text);
    if (!strpbrk(text, ":=/\\%")) /* one of them precedes each secret */
        return bson_strdup(text);
    return redact(text, &has_scheme);
}

bool spill_resembles_secret_uri(const char *text)
{
    bool has_scheme;
    if (strnlen(text, SPILL_REDACT_BYTES_MAX + 1) > SPILL_REDACT_BYTES_MAX)
        return strstr(text, "//") != NULL && strchr(text, '@') != NULL;
    bson_free(redact(text, &has_scheme));
    return has_scheme;
}
