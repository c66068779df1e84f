/* Texts in a page: names come from databases, and may be anything. */
#ifndef SPILL_TOOLS_REPORT_HTML_H
#define SPILL_TOOLS_REPORT_HTML_H

#include <spillway/value.h>

#include <stdio.h>

/* A text as it is to be read, spill_visible_text, for an element's content or an attribute. */
void spill_html_text(FILE *to, const char *text);

/* A name, by itself: code that is set apart from the direction of what is around it. */
void spill_html_name(FILE *to, const char *name);

/* A value as relaxed Extended JSON, likewise. */
void spill_html_value(FILE *to, const spill_value_t *value);

/*
 * A row's cell with a figure of ours. On a screen too narrow for columns it stands on a line of its
 * own, with the label before it, which is what the column's head says.
 */
void spill_html_cell(FILE *to, const char *label, const char *text);

#endif
