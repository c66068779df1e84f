/* The lines of the gateway's log. */
#include "gateway/gateway_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Log one event and return what it wrote to stderr. */
static const char *logged(const char *event, bson_t *fields)
{
    static char line[512];
    FILE *to = tmpfile();
    assert_non_null(to);
    fflush(stderr);
    int terminal = dup(STDERR_FILENO);
    assert_int_equal(dup2(fileno(to), STDERR_FILENO), STDERR_FILENO);
    spill_gateway_log(event, fields);
    fflush(stderr);
    assert_int_equal(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    close(terminal);
    rewind(to);
    line[fread(line, 1, sizeof line - 1, to)] = '\0';
    fclose(to);
    return line;
}

static void line_has_its_event_and_fields(void **state)
{
    (void)state;
    const char *line = logged("refused", BCON_NEW("command", BCON_UTF8("drop")));
    assert_memory_equal(line, "{ \"t\" : \"", 9);
    assert_non_null(strstr(line, "\"event\" : \"refused\""));
    assert_non_null(strstr(line, "\"command\" : \"drop\""));
    assert_string_equal(strchr(line, '\n'), "\n");
}

/* A client chooses the name of its command. The event is not lost. */
static void field_that_is_no_utf8_costs_the_fields(void **state)
{
    (void)state;
    const char *line = logged("refused", BCON_NEW("command", BCON_UTF8("dr\xFFop")));
    assert_non_null(strstr(line, "\"event\" : \"refused\""));
    assert_null(strstr(line, "command"));
    assert_int_equal(spill_gateway_lost_lines()->lines, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_has_its_event_and_fields),
        cmocka_unit_test(field_that_is_no_utf8_costs_the_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
