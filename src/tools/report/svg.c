#include "tools/report/svg.h"

#include "tools/report/gnuplot.h"
#include "tools/report/html.h"
#include "util/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void spill_svg_begin(spill_svg_t *svg, int height)
{
    *svg = (spill_svg_t){0};
    svg->script = open_memstream(&svg->text, &svg->size);
    fprintf(svg->script,
            "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,15' "
            "background '#ffffff'\n"
            "set encoding utf8\n"
            "set datafile separator '\\t'\n"
            "set border 3 linecolor rgb '#444444'\n"
            "set tics nomirror out scale 0.6 textcolor rgb '#111111'\n"
            "set grid ytics linetype 1 linewidth 0.7 linecolor rgb '#dddddd'\n"
            "unset key\n",
            SPILL_SVG_WIDTH, height);
}

/* The place of the text, or the end. */
static const char *find_text(const char *at, const char *end, const char *text)
{
    const char *found = memmem(at, (size_t)(end - at), text, strlen(text));
    return found ? found : end;
}

static bool begins(const char *at, const char *end, const char *text)
{
    return (size_t)(end - at) >= strlen(text) && memcmp(at, text, strlen(text)) == 0;
}

/* The end of what must be skipped at `at`; `at` itself if nothing is. */
static const char *end_of_skipped(const char *at, const char *end)
{
    static const char *const pairs[][2] = {{"<title>", "</title>"},
                                           {"<desc>", "</desc>"},
                                           {"<defs>", "</defs>"},
                                           {" id=\"", "\""},
                                           {" xmlns:xlink=\"", "\""}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t opening = strlen(pairs[i][0]);
        if (!begins(at, end, pairs[i][0]))
            continue;
        const char *close = find_text(at + opening, end, pairs[i][1]);
        return close < end ? close + strlen(pairs[i][1]) : end;
    }
    return at;
}

/* Skip titles, unused markers, and ids that every picture would repeat. */
static void put_stripped(const char *at, const char *end, FILE *to)
{
    while (at < end) {
        const char *after = end_of_skipped(at, end);
        if (after == at)
            putc(*at++, to);
        at = after > at ? after : at;
    }
}

static spill_code_t put_embedded(const spill_buffer_t *out, const char *label, FILE *to,
                                 spill_error_t *error)
{
    static const char opening[] = "<svg", closing[] = "</svg>";
    const char *data = (const char *)out->data, *end = data + out->size;
    const char *from = find_text(data, end, opening);
    const char *until = find_text(from, end, closing);
    if (until == end)
        return spill_fail(error, SPILL_IO, "gnuplot wrote no picture");
    fprintf(to, "%s role=\"img\" aria-label=\"", opening);
    spill_html_text(to, label);
    fputs("\"", to);
    put_stripped(from + strlen(opening), until, to);
    fprintf(to, "%s\n", closing);
    return SPILL_OK;
}

spill_code_t spill_svg_end(spill_svg_t *svg, const char *label, FILE *to, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t out = SPILL_BUFFER_INIT;
    fclose(svg->script);
    spill_code_t code = spill_gnuplot(svg->text, svg->size, &out, error);
    free(svg->text);
    SPILL_TRY(code);
    return put_embedded(&out, label, to, error);
}
