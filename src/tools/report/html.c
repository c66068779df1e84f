#include "tools/report/html.h"

#include "util/text.h"

#include <bson/bson.h>

static void put_escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            putc(*text, to);
        }
    }
}

void spill_html_text(FILE *to, const char *text)
{
    char *visible = spill_visible_text(text);
    put_escaped(to, visible);
    bson_free(visible);
}

void spill_html_name(FILE *to, const char *name)
{
    fputs("<bdi><code>", to);
    spill_html_text(to, name);
    fputs("</code></bdi>", to);
}

void spill_html_place(FILE *to, const char *collection, const char *path)
{
    spill_html_name(to, collection);
    if (path) {
        fputs(": ", to);
        spill_html_name(to, path);
    }
}

void spill_html_value(FILE *to, const spill_value_t *value)
{
    char *json = spill_value_to_json(value, false);
    spill_html_name(to, json ? json : "?");
    bson_free(json);
}

void spill_html_cell(FILE *to, const char *label, const char *text)
{
    fprintf(to, "<td data-label=\"%s\">%s</td>", label, text);
}
