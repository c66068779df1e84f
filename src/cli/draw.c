/* Draw documents in the terminal: their contents, and how full they are. */
#include "cli/draw.h"

#include "cli/cli.h"
#include "util/text.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

enum { BAR_CELLS = 20, BAR_COLUMN = 15 };

static double slots_fill(const spill_cli_place_t *place)
{
    return (double)place->slots / (double)place->limits.slots_max;
}

static double bytes_fill(const spill_cli_place_t *place)
{
    return (double)place->bytes / (double)place->limits.bytes_max;
}

/* How full by slots or bytes, the greater of the two: 1.0 is full; a single element may exceed it.
 */
static double how_full(const spill_cli_place_t *place)
{
    return slots_fill(place) > bytes_fill(place) ? slots_fill(place) : bytes_fill(place);
}

/* Report whether the terminal shows UTF-8, by the environment's locale. Determined once. */
static bool has_utf8(void)
{
    static enum { NOT_ASKED, NO, YES } utf8 = NOT_ASKED;
    locale_t locale = utf8 == NOT_ASKED ? newlocale(LC_CTYPE_MASK, "", (locale_t)0) : (locale_t)0;
    if (locale != (locale_t)0) {
        utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0 ? YES : NO;
        freelocale(locale);
    }
    return utf8 == YES;
}

/* A document that is not empty has at least one cell, and one that is not full lacks at least one.
 */
static void draw_bar(double fill)
{
    bool utf8 = has_utf8();
    int cells = (int)(fill * BAR_CELLS + 0.5);
    if (fill > 0 && cells == 0)
        cells = 1;
    if (fill < 1 && cells >= BAR_CELLS)
        cells = BAR_CELLS - 1;
    for (int i = 0; i < BAR_CELLS; i++) {
        if (i < cells)
            fputs(utf8 ? "\u2588" : "#", stdout);
        else
            fputs(utf8 ? "\u2591" : ".", stdout);
    }
}

static int percent(double fill)
{
    return (int)(fill * 100); /* rounded down: only a full document is 100 */
}

static const char *trimmed(const spill_cli_place_t *place)
{
    if (place->elements == 0 || place->first >= place->watermark)
        return "";
    return place->end <= place->watermark ? ", all trimmed" : ", some trimmed";
}

/* Print the rest of a line. Where a terminal has no room for the collection, leave it out. */
static void end_line(const char *line, const char *collection)
{
    size_t columns = BAR_COLUMN + BAR_CELLS + strlen(line) + strlen(" in ") + strlen(collection);
    bool fits = !spill_cli_on_terminal() || columns <= (size_t)spill_cli_terminal_columns();
    spill_cli_print("%s%s%s\n", line, fits ? " in " : "", fits ? collection : "");
}

void spill_cli_draw_place(const spill_cli_place_t *place)
{
    char bound[24];
    snprintf(bound, sizeof bound, "%" PRId64, place->limits.slots_max);
    if (bytes_fill(place) > slots_fill(place))
        strcpy(bound, spill_size_text(place->limits.bytes_max).text);
    spill_cli_print("  %-12s ", place->name);
    draw_bar(how_full(place));
    char *line = bson_strdup_printf(" %3d %% of %-7s  [%" PRId64 "..%" PRId64 ")  %s%s, %s",
                                    percent(how_full(place)), bound, place->first, place->end,
                                    spill_counted_text(place->elements, "element", "elements").text,
                                    trimmed(place), spill_size_text(place->bytes).text);
    end_line(line, place->collection);
    bson_free(line);
}

void spill_cli_draw_top(const spill_cli_place_t *top, int64_t known)
{
    spill_cli_print("  %-12s ", top->name);
    draw_bar(how_full(top));
    spill_cli_print(" %3d %% of %-7s  %" PRId64 " of %" PRId64 " elements shown, %s in %s\n",
                    percent(how_full(top)), spill_size_text(top->limits.bytes_max).text,
                    top->elements, known, spill_size_text(top->bytes).text, top->collection);
}

void spill_cli_stretch_add(spill_cli_stretch_t *stretch, const spill_cli_place_t *place)
{
    double fill = how_full(place);
    stretch->documents++;
    stretch->elements += place->elements;
    stretch->bytes += place->bytes;
    if (fill < stretch->least_full)
        stretch->least_full = fill;
    if (fill > stretch->most_full)
        stretch->most_full = fill;
}

void spill_cli_draw_stretch(const spill_cli_stretch_t *stretch)
{
    if (stretch->documents == 0)
        return;
    printf("  ... %s, %s, %s, %d to %d %% full\n",
           spill_counted_text(stretch->documents, "more page", "more pages").text,
           spill_counted_text(stretch->elements, "element", "elements").text,
           spill_size_text(stretch->bytes).text, percent(stretch->least_full),
           percent(stretch->most_full));
}
