/*
 * Windows of layout bucket. Below src/core, a window of an owner is itself an owner: its _id is the
 * document {owner, window}. So in the order of keys, one owner's windows are adjacent and sorted by
 * their texts.
 */
#ifndef SPILL_DEFINITION_WINDOW_H
#define SPILL_DEFINITION_WINDOW_H

#include <spillway/bucket.h>

/*
 * The window of a time in milliseconds since 1970. SPILL_INVALID: the year is not in 0 to 9999,
 * where the texts sort; or a field names the definition's windows.
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

/* True: it is the _id of a window. Sets its owner and text, which borrow from it. */
bool spill_window_split(const spill_value_t *window, spill_value_t *owner, const char **text);

/*
 * Check that spill_bucket_window_of can make this text for the definition. SPILL_INVALID: the
 * message has an example. Other texts sort among windows too, but perhaps not as the caller
 * expects.
 */
spill_code_t spill_window_check(const spill_definition_t *definition, const char *text,
                                spill_error_t *error);

/* Is it 1 to SPILL_WINDOW_SIZE - 1 bytes of UTF-8 without control characters? */
bool spill_window_text_valid(const char *text, size_t length);

#endif
