/*
 * Windows of layout bucket. Below src/core, a window of an owner is itself an owner: its _id is the
 * document {owner, window}. So in the order of keys, one owner's windows are adjacent and sorted by
 * their texts.
 */
#ifndef SPILL_DEFINITION_WINDOW_H
#define SPILL_DEFINITION_WINDOW_H

#include <spillway/bucket.h>

/*
 * The window of a time, in milliseconds since 1970. SPILL_INVALID before the year 0 and after 9999,
 * because the texts would not sort, and if a field names the definition's windows.
 */
spill_code_t spill_window_of_time(spill_window_t window, int64_t time_ms,
                                  char text[SPILL_WINDOW_SIZE], spill_error_t *error);

/* The time at the definition's time_field, in milliseconds: a date, ObjectId or timestamp. */
bool spill_window_time(const spill_definition_t *definition, const spill_value_t *element,
                       int64_t *time_ms);

/* As spill_bucket_window_of, for a checked definition and arguments that are not NULL. */
spill_code_t spill_window_of_element(const spill_definition_t *definition,
                                     const spill_value_t *element, char window[SPILL_WINDOW_SIZE],
                                     spill_error_t *error);

/* If it is the _id of a window, set its owner and text; both borrow. */
bool spill_window_split(const spill_value_t *window, spill_value_t *owner, const char **text);

/*
 * Is it the text of a window of this definition, as spill_bucket_window_of makes it? SPILL_INVALID
 * has an example. Other texts would sort among windows too, but probably not where the caller
 * expects.
 */
spill_code_t spill_window_check(const spill_definition_t *definition, const char *text,
                                spill_error_t *error);

/* Can a window have this text: 1 to SPILL_WINDOW_SIZE - 1 bytes of UTF-8, nothing below a blank? */
bool spill_window_text_valid(const char *text, size_t length);

#endif
