#include "coverage.h"

#include "store/transition.h"

#include <inttypes.h>

static const char *const texts[] = {
#define SIM_EVENT_TEXT(name, text) text,
    SIM_REQUEST_EVENTS(SIM_EVENT_TEXT) SIM_TURN_EVENTS(SIM_EVENT_TEXT)
        SIM_FAULT_EVENTS(SIM_EVENT_TEXT)
#undef SIM_EVENT_TEXT
};

const char *sim_event_text(sim_event_t event)
{
    return texts[event];
}

static sim_event_t append_event(const spill_request_t *request, const spill_state_t *before,
                                const spill_seen_t *seen, bool done)
{
    if (done && !before->present)
        return SIM_APPEND_CREATED;
    if (done)
        return request->page == SPILL_HEAD ? SIM_APPEND_DONE_HEAD : SIM_APPEND_DONE_PAGE;
    switch (spill_append_refusal(request, before, seen)) {
    case SPILL_REFUSAL_REPEATED:
        return SIM_APPEND_REPEATED;
    case SPILL_REFUSAL_STALE:
        return SIM_APPEND_STALE;
    case SPILL_REFUSAL_TOO_OLD:
        return SIM_APPEND_TOO_OLD;
    case SPILL_REFUSAL_NO_MATCH:
        return SIM_APPEND_NO_MATCH;
    case SPILL_REFUSAL_SESSIONS:
    case SPILL_REFUSAL_GAPS:
        return SIM_APPEND_SESSIONS;
    case SPILL_REFUSAL_PRESENT: /* only of transfers, which are not simulated */
    case SPILL_REFUSAL_SEARCH:
        return SIM_APPEND_SEARCH;
    case SPILL_REFUSAL_SEALED:
        return SIM_APPEND_SEALED;
    case SPILL_REFUSAL_ABSENT:
        return SIM_APPEND_ABSENT;
    case SPILL_REFUSAL_FULL:
    case SPILL_REFUSAL_NONE:
        break;
    }
    return SIM_APPEND_FULL;
}

static sim_event_t put_event(const spill_request_t *request, const spill_state_t *before, bool done)
{
    if (done && !before->present)
        return SIM_PUT_PAGE_DONE;
    if (done)
        return before->incarnation == request->incarnation ? SIM_PUT_PAGE_REPLACED
                                                           : SIM_PUT_PAGE_INCARNATION;
    return before->incarnation == request->incarnation &&
                   before->source_rev == request->put_page.source_rev
               ? SIM_PUT_PAGE_SAME
               : SIM_PUT_PAGE_NEWER;
}

static sim_event_t cut_event(const spill_request_t *request, const spill_state_t *before, bool done)
{
    if (done)
        return SIM_CUT_DONE;
    if (!before->present || before->incarnation != request->incarnation)
        return SIM_CUT_INCARNATION;
    return before->pages != request->cut.pages ? SIM_CUT_PAGES : SIM_CUT_REV;
}

static sim_event_t seal_event(const spill_request_t *request, const spill_state_t *before,
                              bool done)
{
    if (done && request->seal.close)
        return SIM_SEAL_CLOSED;
    if (done)
        return request->page == SPILL_HEAD ? SIM_SEAL_DONE_HEAD : SIM_SEAL_DONE_PAGE;
    return before->present && before->incarnation == request->incarnation ? SIM_SEAL_SEALED
                                                                          : SIM_SEAL_INCARNATION;
}

static sim_event_t advance_event(const spill_request_t *request, const spill_state_t *before,
                                 bool done)
{
    if (!done)
        return SIM_ADVANCE_INCARNATION;
    return before->pages < request->advance.pages ? SIM_ADVANCE_DONE : SIM_ADVANCE_BEHIND;
}

static sim_event_t edit_event(const spill_request_t *request, const spill_state_t *before,
                              bool done)
{
    if (done)
        return request->page == SPILL_HEAD ? SIM_EDIT_DONE_HEAD : SIM_EDIT_DONE_PAGE;
    return before->present && before->rev == request->rev ? SIM_EDIT_FULL : SIM_EDIT_REV;
}

static sim_event_t drop_head_event(const spill_request_t *request, const spill_state_t *before,
                                   bool done)
{
    if (done)
        return SIM_DROP_HEAD_DONE;
    return before->present && before->incarnation == request->incarnation
               ? SIM_DROP_HEAD_PAGES
               : SIM_DROP_HEAD_INCARNATION;
}

sim_event_t sim_request_event(const spill_request_t *request, const spill_state_t *before,
                              const spill_seen_t *seen, bool done)
{
    bool same_incarnation = before->present && before->incarnation == request->incarnation;
    switch (request->kind) {
    case SPILL_REQUEST_APPEND:
        return append_event(request, before, seen, done);
    case SPILL_REQUEST_PUT_PAGE:
        return put_event(request, before, done);
    case SPILL_REQUEST_CUT:
        return cut_event(request, before, done);
    case SPILL_REQUEST_SEAL:
        return seal_event(request, before, done);
    case SPILL_REQUEST_ADVANCE:
        return advance_event(request, before, done);
    case SPILL_REQUEST_CREATE_PAGE:
        if (!done)
            return SIM_CREATE_PAGE_PRESENT;
        return before->present ? SIM_CREATE_PAGE_INCARNATION : SIM_CREATE_PAGE_DONE;
    case SPILL_REQUEST_EDIT:
        return edit_event(request, before, done);
    case SPILL_REQUEST_REMOVE:
        return done ? SIM_REMOVE_DONE : SIM_REMOVE_REV;
    case SPILL_REQUEST_PREPARE:
        return done ? SIM_PREPARE_DONE : SIM_PREPARE_REV;
    case SPILL_REQUEST_DELETE:
        if (done)
            return SIM_DELETE_DONE;
        return same_incarnation ? SIM_DELETE_GONE : SIM_DELETE_INCARNATION;
    case SPILL_REQUEST_COMPLETE:
        return done ? SIM_COMPLETE_DONE : SIM_COMPLETE_REV;
    case SPILL_REQUEST_TRIM:
        return done ? SIM_TRIM_DONE : SIM_TRIM_REV;
    case SPILL_REQUEST_REWRITE:
        if (done)
            return SIM_REWRITE_DONE;
        if (seen->session != SPILL_SESSION_NEW)
            return SIM_REWRITE_SESSION;
        return before->present && before->rev == request->rev ? SIM_REWRITE_END : SIM_REWRITE_REV;
    case SPILL_REQUEST_RECOUNT:
        return done ? SIM_RECOUNT_DONE : SIM_RECOUNT_REV;
    case SPILL_REQUEST_EMPTY_PAGE:
        return done ? SIM_EMPTY_PAGE_DONE : SIM_EMPTY_PAGE_REFUSED;
    case SPILL_REQUEST_UPDATE_FIELDS:
        if (!done)
            return SIM_UPDATE_FIELDS_REFUSED;
        return before->present ? SIM_UPDATE_FIELDS_DONE : SIM_UPDATE_FIELDS_CREATED;
    case SPILL_REQUEST_FORGET:
        return done ? SIM_FORGET_DONE : SIM_FORGET_ABSENT;
    case SPILL_REQUEST_DROP_HEAD:
        return drop_head_event(request, before, done);
    case SPILL_REQUEST_DROP_PAGE:
        return done ? SIM_DROP_PAGE_DONE : SIM_DROP_PAGE_REFUSED;
    case SPILL_REQUEST_READ:
    /* no simulated client adopts unmanaged arrays: see model/test_migrate */
    case SPILL_REQUEST_ADOPT:
    case SPILL_REQUEST_ADOPT_SPLIT:
    case SPILL_REQUEST_UNMANAGE:
    case SPILL_REQUEST_KIND_COUNT:
        break;
    }
    return before->present ? SIM_READ_DONE : SIM_READ_ABSENT;
}

int sim_coverage_report(const sim_coverage_t *coverage, bool (*expected)(sim_event_t event),
                        FILE *file)
{
    int missing = 0;
    fprintf(file, "%" PRId64 " schedules, %" PRId64 " store calls\n", coverage->schedules,
            coverage->calls);
    for (sim_event_t event = 0; event < SIM_EVENT_COUNT; event++) {
        bool zero = coverage->seen[event] == 0 && expected(event);
        if (zero || coverage->seen[event] > 0)
            fprintf(file, "%12" PRId64 "  %s%s\n", coverage->seen[event], texts[event],
                    zero ? "   <-- never reached" : "");
        missing += zero;
    }
    return missing;
}
