/* Arrays of other programs: what is told of them. */
#include "store/unmanaged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_way(const char *preset, spill_layout_t layout, const char *sort_field,
                       const char *expected)
{
    spill_definition_t definition;
    spill_error_t error;
    assert_int_equal(spill_definition_preset(&definition, preset, "events", NULL), SPILL_OK);
    if (layout != definition.layout)
        spill_definition_set_layout(&definition, layout);
    strcpy(definition.sort_field, sort_field);
    assert_int_equal(spill_unmanaged_refuse(&definition, 7, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "has 7 elements that were not put there by Spillway"));
    assert_non_null(strstr(error.message, expected));
}

/* What is offered is something that the layout can have. */
static void the_way_in_depends_on_the_layout(void **state)
{
    (void)state;
    assert_way("feed-recent", SPILL_LAYOUT_OUTLIER, "", "run `spillway migrate' to adopt them");
    assert_way("feed", SPILL_LAYOUT_OUTLIER, "", "`spillway convert --keep oldest'");
    assert_way("feed-recent", SPILL_LAYOUT_CAPPED, "",
               "convert that to this layout (`spillway convert')");
    assert_way("reviews-bucket", SPILL_LAYOUT_BUCKET, "", "convert that to this layout");
    assert_way("feed-recent", SPILL_LAYOUT_CAPPED, "score", "append them (`spillway import')");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_in_depends_on_the_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
