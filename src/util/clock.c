/* The system's clocks, and a reader of times in ISO 8601. */
#include "util/clock.h"

#include <errno.h>
#include <time.h>

int64_t spill_clock_now_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void spill_clock_sleep_us(void *context, int64_t duration_us)
{
    (void)context;
    if (duration_us < 1)
        return;
    struct timespec left = {
        .tv_sec = (time_t)(duration_us / 1000000),
        .tv_nsec = (long)(duration_us % 1000000) * 1000,
    };
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* ---- durations and waits --------------------------------------------------------------------- */

int64_t spill_clock_monotonic_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t spill_clock_monotonic_s(void)
{
    return spill_clock_monotonic_us(NULL) / 1000000;
}

struct timespec spill_clock_at_us(int64_t us)
{
    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

struct timespec spill_clock_after_us(int64_t wait_us)
{
    return spill_clock_at_us(spill_clock_monotonic_us(NULL) + wait_us);
}

void spill_clock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* ---- times as text --------------------------------------------------------------------------- */

typedef struct reader {
    const char *at, *end;
    bool good;
} reader_t;

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Read a number of exactly `digits` digits, at most `most`. */
static int read_number(reader_t *reader, int digits, int most)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        if (reader->at == reader->end || !is_digit(*reader->at)) {
            reader->good = false;
            return 0;
        }
        value = 10 * value + (*reader->at++ - '0');
    }
    reader->good = reader->good && value <= most;
    return value;
}

static bool skip_character(reader_t *reader, char character)
{
    bool there = reader->at < reader->end && *reader->at == character;
    reader->at += there;
    return there;
}

static void require_character(reader_t *reader, char character)
{
    reader->good = skip_character(reader, character) && reader->good;
}

static bool is_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970-01-01 to a day of the Gregorian calendar. */
static int64_t days_of(int year, int month, int day)
{
    static const int before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int past = year - 1; /* whole years; year 0 is a leap year */
    int64_t days = 365 * (int64_t)year + (year > 0 ? past / 4 - past / 100 + past / 400 + 1 : 0);
    return days + before_month[month - 1] + (month > 2 && is_leap_year(year)) + day - 1 - 719528;
}

/* "2026-08-21", "20260821", or "2026-08" for the first day of the month. */
static int64_t read_day(reader_t *reader)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = read_number(reader, 4, 9999);
    bool marks = skip_character(reader, '-');
    int month = read_number(reader, 2, 12);
    bool whole_month = marks && reader->at == reader->end;
    if (marks && !whole_month)
        require_character(reader, '-');
    int day = whole_month ? 1 : read_number(reader, 2, 31);
    if (!reader->good || month == 0 || day == 0 ||
        day > lengths[month - 1] + (month == 2 && is_leap_year(year)) ||
        ((whole_month || !marks) && (year < 1900 || year > 2099))) { /* perhaps another number */
        reader->good = false;
        return 0;
    }
    return days_of(year, month, day);
}

/* Read at least one digit behind a point or a comma, as milliseconds. */
static int64_t read_fraction(reader_t *reader)
{
    int64_t value = 0, unit = 100;
    if (!skip_character(reader, '.') && !skip_character(reader, ','))
        return 0;
    reader->good = reader->good && reader->at < reader->end && is_digit(*reader->at);
    for (; reader->at < reader->end && is_digit(*reader->at); reader->at++, unit /= 10)
        value += unit * (*reader->at - '0');
    return value;
}

/* Skip the sign before minutes or seconds; without `marks`, they follow at once. */
static bool begins_part(reader_t *reader, bool marks)
{
    return marks ? skip_character(reader, ':') : reader->at < reader->end && is_digit(*reader->at);
}

/* "T10", "T10:30", "T10:30:15.25", "T1030" or "T103015". After a blank, a ':' is required. */
static int64_t read_time_of_day(reader_t *reader)
{
    bool blank = skip_character(reader, ' ');
    reader->good = blank || skip_character(reader, 'T') || skip_character(reader, 't');
    int64_t seconds = 3600 * (int64_t)read_number(reader, 2, 23);
    int64_t fraction = 0;
    bool marks = blank || reader->at == reader->end || !is_digit(*reader->at);
    bool minutes = begins_part(reader, marks);
    reader->good = reader->good && (minutes || !blank);
    if (minutes)
        seconds += 60 * (int64_t)read_number(reader, 2, 59);
    if (minutes && begins_part(reader, marks)) {
        seconds += read_number(reader, 2, 60); /* a leap second is the next second */
        fraction = read_fraction(reader);
    }
    return 1000 * seconds + fraction;
}

/* Read the offset of local time from UTC. */
static int64_t read_zone(reader_t *reader)
{
    if (reader->at == reader->end || skip_character(reader, 'Z') || skip_character(reader, 'z'))
        return 0;
    bool behind = skip_character(reader, '-');
    if (!behind)
        require_character(reader, '+');
    int64_t minutes = 60 * (int64_t)read_number(reader, 2, 23);
    if (reader->at < reader->end) {
        skip_character(reader, ':');
        minutes += read_number(reader, 2, 59);
    }
    return (behind ? -minutes : minutes) * 60000;
}

bool spill_iso_time(const char *text, size_t size, int64_t *time_ms)
{
    reader_t reader = {.at = text, .end = text + size, .good = true};
    *time_ms = 0;
    if (size < 7 || (text[4] != '-' && !is_digit(text[4]))) /* a quick test for most other texts */
        return false;
    int64_t time = read_day(&reader) * 86400000;
    if (reader.good && reader.at < reader.end) {
        time += read_time_of_day(&reader);
        time -= read_zone(&reader);
    }
    if (!reader.good || reader.at != reader.end)
        return false;
    *time_ms = time;
    return true;
}
