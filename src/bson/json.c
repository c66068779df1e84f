/* JSON text: a strict check of it, and values to and from Extended JSON. */
#include "bson/value.h"

#include "util/buffer.h"
#include "util/error.h"

#include <bson/bson.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* ---- the check ------------------------------------------------------------------------------- */

/* A scan of the text. Each function reads one item and moves behind it, or sets `problem`. */
typedef struct scan {
    const char *start;
    const char *at;
    const char *end;
    const char *problem;
    int scopes; /* number of open "$scope" members */
} scan_t;

static bool fail_at(scan_t *scan, const char *at, const char *problem)
{
    scan->at = at;
    scan->problem = problem;
    return false;
}

static void skip_space(scan_t *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

/* The next character that is not white space; '\0' at the end. The scan stays before it. */
static char peek(scan_t *scan)
{
    skip_space(scan);
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Read four hexadecimal digits; -1 if they are missing. */
static int scan_hex4(scan_t *scan)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        char c = scan->at < scan->end ? *scan->at : '\0';
        int digit = is_digit(c)              ? c - '0'
                    : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                    : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                             : -1;
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
        scan->at++;
    }
    return code;
}

static bool is_high_surrogate(int code)
{
    return code >= 0xd800 && code < 0xdc00;
}

static bool is_low_surrogate(int code)
{
    return code >= 0xdc00 && code < 0xe000;
}

/* Read what follows "\u". Surrogates must come in pairs. */
static bool scan_code_point(scan_t *scan, const char *escape, bool is_name)
{
    int code = scan_hex4(scan);
    if (code < 0)
        return fail_at(scan, escape, "\\u needs four hexadecimal digits");
    if (code == 0 && is_name)
        return fail_at(scan, escape, "a name cannot contain \\u0000");
    if (is_high_surrogate(code) && scan->end - scan->at >= 2 && memcmp(scan->at, "\\u", 2) == 0) {
        scan->at += 2;
        code = is_low_surrogate(scan_hex4(scan)) ? 0 : code;
    }
    if (is_high_surrogate(code) || is_low_surrogate(code))
        return fail_at(scan, escape, "half of a surrogate pair");
    return true;
}

static bool scan_escape(scan_t *scan, bool is_name)
{
    const char *escape = scan->at++;
    char c = scan->at < scan->end ? *scan->at++ : '\0';
    if (c == 'u')
        return scan_code_point(scan, escape, is_name);
    if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL)
        return fail_at(scan, escape, "not an escape sequence");
    return true;
}

static bool scan_string(scan_t *scan, bool is_name)
{
    const char *quote = scan->at++;
    bool ascii = true;
    while (scan->at < scan->end && *scan->at != '"') {
        unsigned char c = (unsigned char)*scan->at;
        if (c == '\\') {
            if (!scan_escape(scan, is_name))
                return false;
            continue;
        }
        if (c < 0x20)
            return fail_at(scan, scan->at, "a control character in a string");
        ascii = ascii && c < 0x80;
        scan->at++;
    }
    if (scan->at == scan->end)
        return fail_at(scan, quote, "a string without its end");
    if (!ascii && !bson_utf8_validate(quote + 1, (size_t)(scan->at - quote - 1), true))
        return fail_at(scan, quote, "a string that is not UTF-8");
    scan->at++;
    return true;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static bool scan_digits(scan_t *scan)
{
    const char *first = scan->at;
    while (scan->at < scan->end && is_digit(*scan->at))
        scan->at++;
    return scan->at > first || fail_at(scan, first, "a digit is missing");
}

/* Is it beyond 64 bits? Leading zeros are not allowed, so digits can be compared as text. */
static bool too_large(const char *digits, size_t count, bool negative)
{
    const char *limit = negative ? "9223372036854775808" : "9223372036854775807";
    return count > 19 || (count == 19 && memcmp(digits, limit, 19) > 0);
}

static bool scan_number(scan_t *scan)
{
    const char *first = scan->at;
    bool negative = *scan->at == '-';
    scan->at += negative;
    const char *digits = scan->at;
    if (!scan_digits(scan))
        return false;
    size_t count = (size_t)(scan->at - digits);
    if (*digits == '0' && count > 1)
        return fail_at(scan, first, "a number with a leading zero");
    bool integer = true;
    if (scan->at < scan->end && *scan->at == '.') {
        integer = false;
        scan->at++;
        if (!scan_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        integer = false;
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        if (!scan_digits(scan))
            return false;
    }
    if (integer && too_large(digits, count, negative))
        return fail_at(scan, first,
                       "an integer beyond 64 bits (write {\"$numberDecimal\": \"...\"})");
    return true;
}

static bool scan_word(scan_t *scan, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return fail_at(scan, scan->at, "not a JSON value");
    scan->at += length;
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool scan_value(scan_t *scan, int depth, bool in_array);

/* Does the scanned string, from its quote on, spell the word? */
static bool spells(scan_t string, const char *word)
{
    string.at++;
    for (; *word != '\0'; word++) {
        int c = (unsigned char)*string.at++;
        if (c == '\\' && *string.at++ == 'u')
            c = scan_hex4(&string);
        if (c != *word)
            return false;
    }
    return *string.at == '"';
}

/* The meaning of a member's name for libbson. */
typedef enum name_kind {
    NAME_PLAIN,
    NAME_CODE,
    NAME_SCOPE,
    NAME_POINTER,
    NAME_DOUBLE,
    NAME_TIMESTAMP
} name_kind_t;

static name_kind_t name_kind(const scan_t *scan, const char *name)
{
    if (name[1] != '$' && name[1] != '\\')
        return NAME_PLAIN;
    const scan_t string = {.at = name, .end = scan->at};
    return spells(string, "$code")           ? NAME_CODE
           : spells(string, "$scope")        ? NAME_SCOPE
           : spells(string, "$dbPointer")    ? NAME_POINTER
           : spells(string, "$numberDouble") ? NAME_DOUBLE
           : spells(string, "$timestamp")    ? NAME_TIMESTAMP
                                             : NAME_PLAIN;
}

/*
 * Refuse code and pointers where libbson reads them wrongly. As elements of an array, and if the
 * scope comes first, they get a key from uninitialized memory. Code in the scope of other code
 * becomes a document.
 */
static bool check_notation(scan_t *scan, const char *name, name_kind_t kind, name_kind_t previous,
                           bool in_array)
{
    if (kind == NAME_CODE && (in_array || scan->scopes > 0))
        return fail_at(scan, name, "code inside an array or a scope cannot be read from JSON");
    if (kind == NAME_POINTER && in_array)
        return fail_at(scan, name, "a pointer inside an array cannot be read from JSON");
    if (kind == NAME_SCOPE && previous != NAME_CODE)
        return fail_at(scan, name, "\"$scope\" must come right after \"$code\"");
    return true;
}

/* Does the scanned text have an escaped NUL? */
static bool has_nul(const char *text, const char *end)
{
    for (; text < end; text++)
        if (*text == '\\' && *++text == 'u' && memcmp(text, "u0000", 5) == 0)
            return true;
    return false;
}

/* The words that libbson reads as doubles, in any case. */
static const char *const double_words[] = {"nan", "inf", "infinity"};

/* Does a scanned string spell a number, or one of the words for numbers that are not finite? */
static bool spells_double(scan_t string)
{
    string.at++;
    string.at += *string.at == '-' || *string.at == '+';
    for (size_t i = 0; i < sizeof double_words / sizeof *double_words; i++) {
        size_t length = strlen(double_words[i]);
        if ((size_t)(string.end - string.at) == length + 1 &&
            strncasecmp(string.at, double_words[i], length) == 0)
            return true;
    }
    const char *first = string.at;
    while (is_digit(*string.at))
        string.at++;
    bool point = *string.at == '.';
    string.at += point;
    while (is_digit(*string.at))
        string.at++;
    if (string.at - first == point)
        return false;
    if (*string.at == 'e' || *string.at == 'E') {
        string.at++;
        string.at += *string.at == '-' || *string.at == '+';
        if (!scan_digits(&string))
            return false;
    }
    return *string.at == '"';
}

/* The first number in the scanned text that has more than 32 bits, or NULL. */
static const char *beyond_32_bits(const char *text, const char *end)
{
    static const char limit[] = "4294967295";
    for (; text < end; text++) {
        const char *first = text;
        while (text < end && is_digit(*text))
            text++;
        size_t count = (size_t)(text - first);
        if (count >= sizeof limit || (count == sizeof limit - 1 && memcmp(first, limit, count) > 0))
            return first;
    }
    return NULL;
}

/* Refuse a value of a notation that libbson reads as another value, without an error. */
static bool check_content(scan_t *scan, const char *value, name_kind_t kind)
{
    const scan_t content = {.at = value, .end = scan->at};
    if (kind == NAME_CODE && has_nul(value, scan->at))
        return fail_at(scan, value, "code with \\u0000 cannot be read from JSON");
    if (kind == NAME_DOUBLE && *value == '"' && !spells_double(content))
        return fail_at(scan, value, "the text is not a number");
    const char *beyond = kind == NAME_TIMESTAMP ? beyond_32_bits(value, scan->at) : NULL;
    return !beyond || fail_at(scan, beyond, "a number of a timestamp has more than 32 bits");
}

/* `previous` is the kind of the name before; it becomes the kind of this name. */
static bool scan_member(scan_t *scan, int depth, bool in_array, name_kind_t *previous)
{
    if (peek(scan) != '"')
        return fail_at(scan, scan->at, "a name in double quotes is missing");
    const char *name = scan->at;
    if (!scan_string(scan, true))
        return false;
    name_kind_t kind = name_kind(scan, name);
    if (!check_notation(scan, name, kind, *previous, in_array))
        return false;
    *previous = kind;
    if (peek(scan) != ':')
        return fail_at(scan, scan->at, "a colon is missing after a name");
    scan->at++;
    skip_space(scan);
    const char *value = scan->at;
    scan->scopes += kind == NAME_SCOPE;
    bool good = scan_value(scan, depth, false);
    scan->scopes -= kind == NAME_SCOPE;
    return good && check_content(scan, value, kind);
}

/*
 * Scan the members of an object or the elements of an array, from the opening bracket on.
 * `in_array`: the object or array is itself an element of an array.
 */
static bool scan_list(scan_t *scan, char close, int depth, bool in_array)
{
    bool object = close == '}';
    name_kind_t previous = NAME_PLAIN;
    if (depth > SPILL_JSON_NESTING_MAX)
        return fail_at(scan, scan->at, "nested too deeply");
    scan->at++;
    if (peek(scan) == close) {
        scan->at++;
        return true;
    }
    for (;;) {
        if (!(object ? scan_member(scan, depth, in_array, &previous)
                     : scan_value(scan, depth, true)))
            return false;
        char c = peek(scan);
        if (c != ',' && c != close)
            return fail_at(scan, scan->at,
                           object ? "a comma or a closing brace is missing"
                                  : "a comma or a closing bracket is missing");
        scan->at++;
        if (c == close)
            return true;
    }
}

static bool scan_value(scan_t *scan, int depth, bool in_array)
{
    char c = peek(scan);
    switch (c) {
    case '{':
        return scan_list(scan, '}', depth + 1, in_array);
    case '[':
        return scan_list(scan, ']', depth + 1, in_array);
    case '"':
        return scan_string(scan, false);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    default:
        if (c == '-' || is_digit(c))
            return scan_number(scan);
        return fail_at(scan, scan->at, "a value is missing");
    }
}

/* The kind of the value. An escape at the start of the first name counts as a dollar sign. */
static spill_json_kind_t kind_of(scan_t scan)
{
    if (peek(&scan) != '{')
        return SPILL_JSON_OTHER;
    scan.at++;
    bool special = peek(&scan) == '"' && (scan.at[1] == '$' || scan.at[1] == '\\');
    return special ? SPILL_JSON_SPECIAL : SPILL_JSON_DOCUMENT;
}

/* Of a text of several lines, also give the line and the column. */
static spill_code_t fail_malformed(const scan_t *scan, spill_error_t *error)
{
    size_t line = 1;
    const char *begin = scan->start;
    for (const char *at = scan->start; at < scan->at; at++) {
        line += *at == '\n' ? 1 : 0;
        begin = *at == '\n' ? at + 1 : begin;
    }
    size_t offset = (size_t)(scan->at - scan->start);
    if (line == 1)
        return spill_fail(error, SPILL_PARSE, "malformed JSON at offset %zu: %s", offset,
                          scan->problem);
    return spill_fail(error, SPILL_PARSE,
                      "malformed JSON at offset %zu (line %zu, column %zu of the text): %s", offset,
                      line, (size_t)(scan->at - begin) + 1, scan->problem);
}

spill_code_t spill_json_check(const char *text, size_t size_bytes, spill_json_kind_t *kind,
                              spill_error_t *error)
{
    scan_t scan = {.start = text, .at = text, .end = text + size_bytes};
    *kind = SPILL_JSON_OTHER;
    bool whole = scan_value(&scan, 0, false);
    if (whole && (skip_space(&scan), scan.at < scan.end))
        whole = fail_at(&scan, scan.at, "more text after the value");
    if (!whole)
        return fail_malformed(&scan, error);
    *kind = kind_of((scan_t){.at = text, .end = text + size_bytes});
    return SPILL_OK;
}

/* ---- Extended JSON --------------------------------------------------------------------------- */

/* libbson writes only documents, so another value is written as the one field of a document. */
static char *document_to_json(const bson_t *document, bool canonical)
{
    return canonical ? bson_as_canonical_extended_json(document, NULL)
                     : bson_as_relaxed_extended_json(document, NULL);
}

static char *field_to_json(const spill_value_t *value, bool canonical)
{
    static const char before[] = "{ \"\" : ";
    static const char after[] = " }";
    bson_t field = BSON_INITIALIZER;
    char *text = spill_value_append(value, &field, "") ? document_to_json(&field, canonical) : NULL;
    bson_destroy(&field);
    if (text != NULL) {
        size_t length = strlen(text) - strlen(before) - strlen(after);
        memmove(text, text + strlen(before), length);
        text[length] = '\0';
    }
    return text;
}

char *spill_value_to_json(const spill_value_t *value, bool canonical)
{
    if (value == NULL || !spill_value_valid(value))
        return NULL;
    bson_t document;
    char *text = spill_json_write(value, canonical);
    if (text != NULL)
        return text;
    if (value->type == BSON_TYPE_DOCUMENT &&
        bson_init_static(&document, value->data, value->size_bytes))
        return document_to_json(&document, canonical);
    return field_to_json(value, canonical);
}

/* Read any checked text, as {"": text}. */
static bool read_field(const char *text, size_t size_bytes, bson_t *document)
{
    bson_error_t ignored;
    spill_buffer_t wrapped = SPILL_BUFFER_INIT;
    spill_buffer_append(&wrapped, "{\"\":", 4);
    spill_buffer_append(&wrapped, text, size_bytes);
    spill_buffer_append(&wrapped, "}", 1);
    bool read =
        bson_init_from_json(document, (const char *)wrapped.data, (ssize_t)wrapped.size, &ignored);
    spill_buffer_release(&wrapped);
    return read;
}

spill_code_t spill_value_from_json(const char *text, size_t size_bytes, bson_t *storage,
                                   spill_value_t *value, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, value);
    *value = (spill_value_t){0};
    SPILL_CHECK_POINTERS(error, storage);
    SPILL_CHECK_ARGUMENT(error, text != NULL || size_bytes == 0, "the argument 'text' is NULL");
    text = text != NULL ? text : "";
    spill_json_kind_t kind;
    spill_code_t code = spill_json_check(text, size_bytes, &kind, error);
    if (code != SPILL_OK)
        return code;
    bson_t parsed;
    bool is_document = kind == SPILL_JSON_DOCUMENT;
    bson_error_t ignored;
    bool good = is_document ? bson_init_from_json(&parsed, text, (ssize_t)size_bytes, &ignored)
                            : read_field(text, size_bytes, &parsed);
    if (!good)
        return spill_json_refuse(text, size_bytes, error);
    bson_iter_t iter;
    spill_value_t read = spill_value_from_document(&parsed);
    if (!is_document && bson_iter_init(&iter, &parsed) && bson_iter_next(&iter))
        read = spill_value_from_iter(&iter);
    uint32_t before = storage->len;
    if (spill_value_append(&read, storage, ""))
        *value = spill_value_appended(storage, before);
    else
        code = spill_fail(error, SPILL_TOO_BIG, "the value does not fit its storage of 2 GiB");
    bson_destroy(&parsed);
    return code;
}
