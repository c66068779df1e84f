/* Texts in a page: names come from databases, and may have any characters. */
#ifndef SPILL_TOOLS_REPORT_HTML_H
#define SPILL_TOOLS_REPORT_HTML_H

#include <spillway/value.h>

#include <stdio.h>

/* Write a readable text (spill_visible_text) for an element's content or an attribute. */
void spill_html_text(FILE *to, const char *text);

/* Write a name as code, isolated from the text direction around it. */
void spill_html_name(FILE *to, const char *name);

/* Write where an array is: "users: posts"; only "users", if `path` is NULL. */
void spill_html_place(FILE *to, const char *collection, const char *path);

/* Write a value as relaxed Extended JSON in the same way. */
void spill_html_value(FILE *to, const spill_value_t *value);

/*
 * Write a table cell with a figure that is already HTML. On a screen too narrow for columns, it is
 * a line of its own with `label`, the column's head, in front.
 */
void spill_html_cell(FILE *to, const char *label, const char *text);

#endif
