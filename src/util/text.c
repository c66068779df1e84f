/* Text for people, a fast check of UTF-8, and connection strings without their secrets. */
#include "util/text.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

spill_size_text_t spill_size_text(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    spill_size_text_t size;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1024;
    bool whole = unit == 0 || value >= 99.95;
    snprintf(size.text, sizeof size.text, "%.*f", whole ? 0 : 1, value);
    size_t length = strlen(size.text);
    if (length > 2 && strcmp(size.text + length - 2, ".0") == 0)
        length -= 2;
    snprintf(size.text + length, sizeof size.text - length, " %s", units[unit]);
    return size;
}

spill_number_text_t spill_number_text(double number)
{
    enum { DECIMALS_MAX = 6 };
    spill_number_text_t shown;
    double size = fabs(number);
    int decimals = 0;
    while (size > 0 && size < 99.95 && decimals < DECIMALS_MAX) {
        size *= 10;
        decimals++;
    }
    snprintf(shown.text, sizeof shown.text, "%.*f", decimals, number);
    char *end = shown.text + strlen(shown.text);
    while (decimals > 0 && end[-1] == '0')
        *--end = '\0';
    if (decimals > 0 && end[-1] == '.')
        end[-1] = '\0';
    return shown;
}

const char *spill_plural(int64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

bool spill_text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

spill_counted_text_t spill_counted_text(int64_t count, const char *one, const char *many)
{
    spill_counted_text_t counted;
    snprintf(counted.text, sizeof counted.text, "%" PRId64 " %.40s", count,
             spill_plural(count, one, many));
    return counted;
}

spill_day_text_t spill_day_text(int64_t time_ms)
{
    spill_day_text_t day = {"?"};
    struct tm parts;
    time_t seconds = (time_t)(time_ms / 1000);
    if (gmtime_r(&seconds, &parts))
        strftime(day.text, sizeof day.text, "%Y-%m-%d", &parts);
    return day;
}

spill_time_text_t spill_time_text(int64_t time_ms)
{
    spill_time_text_t time = {"?"};
    struct tm parts;
    time_t seconds = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));
    if (gmtime_r(&seconds, &parts))
        strftime(time.text, sizeof time.text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return time;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Decode the character at `text` and return its bytes; 0 if it is not UTF-8. */
static size_t decode(const unsigned char *text, uint32_t *character)
{
    size_t size = text[0] < 0x80 ? 1 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *character = size == 1 ? text[0] : text[0] & (0x7FU >> size);
    if ((text[0] >= 0x80 && text[0] < 0xC2) || text[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80) /* the terminator, too */
            return 0;
        *character = *character << 6 | (text[i] & 0x3FU);
    }
    bool surrogate = *character >= 0xD800 && *character < 0xE000;
    return *character < least[size] || surrogate || *character > 0x10FFFF ? 0 : size;
}

static bool is_hidden(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x061C ||
           character == 0x200E || character == 0x200F ||
           (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

char *spill_shell_quoted(const char *text)
{
    bson_string_t *quoted = bson_string_new("'");
    for (; *text; text++)
        if (*text == '\'')
            bson_string_append(quoted, "'\\''");
        else
            bson_string_append_c(quoted, *text);
    bson_string_append_c(quoted, '\'');
    return bson_string_free(quoted, false);
}

char *spill_shell_word(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_@%+=:,./-";
    bool is_plain = text[0] != '\0' && text[strspn(text, plain)] == '\0';
    return is_plain ? bson_strdup(text) : spill_shell_quoted(text);
}

bool spill_text_is_visible(const char *text)
{
    while (*text >= 0x20 && *text < 0x7F)
        text++;
    return *text == '\0';
}

char *spill_visible_text(const char *text)
{
    spill_buffer_t visible = SPILL_BUFFER_INIT;
    char piece[16];
    uint32_t character;
    const unsigned char *at = (const unsigned char *)text, *copied = at;
    while (*at) {
        bool ascii = *at >= 0x20 && *at < 0x7F;
        size_t size = ascii ? 1 : decode(at, &character);
        if (ascii || (size > 0 && !is_hidden(character))) {
            at += size;
            continue;
        }
        if (size == 0)
            snprintf(piece, sizeof piece, "\\x%02X", at[0]);
        else
            snprintf(piece, sizeof piece, "\\u%04X", character);
        spill_buffer_append(&visible, copied, (size_t)(at - copied));
        spill_buffer_append(&visible, piece, strlen(piece));
        at += size > 0 ? size : 1;
        copied = at;
    }
    spill_buffer_append(&visible, copied, (size_t)(at - copied));
    spill_buffer_append_byte(&visible, '\0');
    return (char *)visible.data;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Length of the character of two or more bytes at `text`; 0 if there is none. */
static size_t character_length(const uint8_t *text, size_t size)
{
    uint8_t first = text[0];
    if (first >= 0xC2 && first <= 0xDF)
        return size >= 2 && is_continuation(text[1]) ? 2 : 0;
    if ((first & 0xF0) == 0xE0) {
        if (size < 3 || !is_continuation(text[1]) || !is_continuation(text[2]))
            return 0;
        bool shorter = first == 0xE0 && text[1] < 0xA0;
        bool surrogate = first == 0xED && text[1] > 0x9F;
        return shorter || surrogate ? 0 : 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (size < 4 || !is_continuation(text[1]) || !is_continuation(text[2]) ||
            !is_continuation(text[3]))
            return 0;
        bool shorter = first == 0xF0 && text[1] < 0x90;
        bool beyond = first == 0xF4 && text[1] > 0x8F;
        return shorter || beyond ? 0 : 4;
    }
    return 0;
}

bool spill_utf8_valid(const uint8_t *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint64_t word;
        while (size - at >= sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if (word & HIGH_BITS)
                break;
            at += sizeof word;
        }
        while (at < size && text[at] < 0x80)
            at++;
        if (at < size) {
            size_t length = character_length(text + at, size - at);
            if (length == 0)
                return false;
            at += length;
        }
    }
    return true;
}

/* ---- secrets --------------------------------------------------------------------------------- */

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
 * Without an '@': the first character behind a colon that no port follows, as in "user:password",
 * whose end was cut off. NULL: all colons have ports, or there are none.
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
