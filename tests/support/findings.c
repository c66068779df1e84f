#include "support/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void note(void *context, const spill_finding_t *finding)
{
    findings_t *findings = context;
    size_t used = strlen(findings->text);
    snprintf(findings->text + used, sizeof findings->text - used, "I%d@%d: %s\n",
             finding->invariant, (int)finding->page, finding->text);
}

void assert_verified(spill_array_t *array, const char *expected)
{
    findings_t findings = {{0}};
    spill_verify_summary_t summary;
    spill_error_t error;
    must(spill_array_verify(array, NULL, note, &findings, &summary, &error), &error);
    assert_string_equal(findings.text, expected);
}

spill_repair_summary_t findings_of_repair(spill_array_t *array, bool look_only,
                                          findings_t *findings)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    findings->text[0] = '\0';
    must(spill_array_repair(array, NULL, look_only, note, findings, &summary, &error), &error);
    return summary;
}

void assert_repaired(spill_array_t *array, const char *verified, const char *repaired,
                     int64_t count)
{
    findings_t findings;
    assert_verified(array, verified);
    for (int look_only = 1; look_only >= 0; look_only--) {
        spill_repair_summary_t summary = findings_of_repair(array, look_only == 1, &findings);
        assert_string_equal(findings.text, repaired);
        assert_int_equal(summary.findings, count);
        assert_int_equal(summary.left, 0);
    }
    assert_verified(array, "");
    assert_int_equal(findings_of_repair(array, false, &findings).findings, 0);
}
