/* Lines for people at the width of their terminal. */
#include "cli/fold.h"

#include "cli/progress.h"
#include "util/file.h"
#include "util/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a line ---------------------------------------------------------------------------------- */

/* A label takes at most a third of a line. After a longer label, text would have too little room.
 */
enum { LABEL_PART = 3 };

/* The bytes of the colour or the character that begins a text, and its columns. */
static size_t step(const char *text, size_t size, size_t *columns)
{
    size_t length = 1;
    *columns = 0;
    if (text[0] == '\033') {
        while (length < size && text[length - 1] != 'm')
            length++;
        return length;
    }
    *columns = (size_t)spill_cli_byte_columns((unsigned char)text[0]);
    while (length < size && ((unsigned char)text[length] & 0xC0U) == 0x80U)
        length++;
    return length;
}

static size_t columns_of(const char *text, size_t size)
{
    size_t columns = 0;
    for (size_t at = 0, wide; at < size; columns += wide)
        at += step(text + at, size - at, &wide);
    return columns;
}

static size_t count_blanks(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && text[count] == ' ')
        count++;
    return count;
}

/*
 * Return the offset of the text after the indentation and, if there is one, the label. A label ends
 * with two blanks, or is a word with a colon.
 */
static size_t text_start(const char *line, size_t size)
{
    size_t indent = count_blanks(line, size);
    bool one_word = true;
    for (size_t at = indent; at + 2 < size; at++) {
        if (line[at] != ' ')
            continue;
        if (line[at + 1] == ' ' || (one_word && line[at - 1] == ':'))
            return at + count_blanks(line + at, size - at);
        one_word = false;
    }
    return indent;
}

static bool begins(const char *text, size_t size, const char *word)
{
    return size >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* Does a person copy the line as a whole? A command, or JSON. */
static bool is_copied(const char *line, size_t size)
{
    static const char introduced[] = ": spillway ";
    if (memmem(line, size, introduced, strlen(introduced)))
        return true;
    const size_t starts[] = {count_blanks(line, size), text_start(line, size)};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *text = line + starts[i];
        if (begins(text, size - starts[i], "spillway ") || begins(text, size - starts[i], "db.") ||
            begins(text, size - starts[i], "{"))
            return true;
    }
    return false;
}

/* The columns before the second line's text. */
static size_t hanging_indent(const char *line, size_t size, size_t columns)
{
    size_t indent = count_blanks(line, size), text = columns_of(line, text_start(line, size));
    return text <= columns / LABEL_PART && text > indent ? text : indent + 2;
}

/* The bytes up to the next blank outside of `quotes' and "quotes". */
static size_t word_size(const char *text, size_t size)
{
    char quote = 0;
    size_t at = 0;
    for (; at < size && (quote || text[at] != ' '); at++)
        if (quote)
            quote = text[at] == quote ? 0 : quote;
        else if (text[at] == '`' && memchr(text + at, '\'', size - at))
            quote = '\'';
        else if (text[at] == '"' && memchr(text + at + 1, '"', size - at - 1))
            quote = '"';
    return at;
}

static void append_blanks(spill_buffer_t *to, size_t count)
{
    while (count-- > 0)
        spill_buffer_append_byte(to, ' ');
}

static void fold_line(const char *line, size_t size, size_t columns, spill_buffer_t *to)
{
    if (columns_of(line, size) <= columns || is_copied(line, size)) {
        spill_buffer_append(to, line, size);
        return;
    }
    size_t indent = hanging_indent(line, size, columns), used = 0;
    for (size_t at = 0; at < size;) {
        size_t blanks = count_blanks(line + at, size - at);
        size_t word = word_size(line + at + blanks, size - at - blanks);
        size_t wide = columns_of(line + at + blanks, word);
        if (at > 0 && used > indent && used + blanks + wide > columns) {
            spill_buffer_append_byte(to, '\n');
            append_blanks(to, indent);
            used = indent;
        } else {
            append_blanks(to, blanks);
            used += blanks;
        }
        spill_buffer_append(to, line + at + blanks, word);
        used += wide;
        at += blanks + word;
    }
}

void spill_cli_fold_text(const char *text, size_t size, size_t columns, spill_buffer_t *to)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t line = end ? (size_t)(end - text) : size;
        fold_line(text, line, columns, to);
        if (end)
            spill_buffer_append_byte(to, '\n');
        text += line + (end != NULL);
        size -= line + (end != NULL);
    }
}

/* ---- stdout ---------------------------------------------------------------------------------- */

static spill_buffer_t unfinished = SPILL_BUFFER_INIT; /* a line without its end */

static bool put_text(const char *text, size_t size)
{
    spill_buffer_t folded = SPILL_BUFFER_INIT;
    spill_cli_fold_text(text, size, (size_t)spill_cli_terminal_columns(), &folded);
    bool written = spill_write_all(STDOUT_FILENO, folded.data, folded.size) == 0;
    spill_buffer_release(&folded);
    return written;
}

static ssize_t write_lines(void *cookie, const char *data, size_t size)
{
    const char *last = memrchr(data, '\n', size);
    size_t lines = last ? (size_t)(last - data) + 1 : 0;
    bool written = true;
    (void)cookie;
    if (last) {
        spill_buffer_append(&unfinished, data, lines);
        written = put_text((const char *)unfinished.data, unfinished.size);
        spill_buffer_clear(&unfinished);
    }
    spill_buffer_append(&unfinished, data + lines, size - lines);
    return written ? (ssize_t)size : 0;
}

static int write_rest(void *cookie)
{
    (void)cookie;
    bool written = put_text((const char *)unfinished.data, unfinished.size);
    spill_buffer_release(&unfinished);
    return written ? 0 : EOF;
}

void spill_cli_fold_stdout(void)
{
    static char buffer[BUFSIZ];
    cookie_io_functions_t functions = {.write = write_lines, .close = write_rest};
    FILE *folded = fopencookie(NULL, "w", functions);
    if (!folded)
        return;
    fflush(stdout);
    setvbuf(folded, buffer, _IOLBF, sizeof buffer);
    stdout = folded; /* as glibc permits */
}
