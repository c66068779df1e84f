/* Messages about unmanaged arrays. */
#include "store/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_advice(const char *preset, spill_layout_t layout, const char *sort_field,
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

/* The advice names only what the layout supports. */
static void advice_depends_on_layout(void **state)
{
    (void)state;
    assert_advice("feed-recent", SPILL_LAYOUT_OUTLIER, "",
                  "or adopt them: `spillway migrate STORE NAME --execute'");
    assert_advice("feed", SPILL_LAYOUT_OUTLIER, "", "`spillway convert --keep oldest'");
    assert_advice("feed-recent", SPILL_LAYOUT_CAPPED, "",
                  "convert that to this layout (`spillway convert')");
    assert_advice("reviews-bucket", SPILL_LAYOUT_BUCKET, "", "convert that to this layout");
    assert_advice("feed-recent", SPILL_LAYOUT_CAPPED, "score", "append them (`spillway import')");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_depends_on_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
