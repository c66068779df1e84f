/*
 * Combine the appends of several threads to one owner. While one command is in progress, later
 * appends wait; the next command carries all of them. On a server the time of a command limits a
 * hot document, and a command with ten elements takes hardly longer than one with one element.
 *
 * spill_layout_append (layout.h) combines appends if the array has a spill_combine_t. Appends of
 * one thread keep their order, and each has its own numbers and its own operation.
 */
#ifndef SPILL_LAYOUT_COMBINE_H
#define SPILL_LAYOUT_COMBINE_H

typedef struct spill_combine spill_combine_t;

spill_combine_t *spill_combine_new(void);
void spill_combine_free(spill_combine_t *combine); /* NULL is allowed */

#endif
