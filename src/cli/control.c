/* control: watch and change a running migrate, sweep or consolidate, over a Unix socket. */
#include "cli/control.h"

#include "cli/cli.h"
#include "tools/parallel.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * A command has at most LINE_SIZE bytes. A client that sends nothing for CLIENT_MS is disconnected.
 */
enum { LINE_SIZE = 128, CLIENT_MS = 2000 };

/* The longest texts of an answer are the progress, an owner, two errors and a path; a byte may
 * become six in JSON. */
enum { ANSWER_SIZE = 16384, PATH_SIZE = 512 };

#define TEXT_OF_TOKEN(token) #token
#define TEXT_OF(macro) TEXT_OF_TOKEN(macro)
#define THREADS_MAX TEXT_OF(SPILL_PARALLEL_MAX)

/* ---- the answer ------------------------------------------------------------------------------ */

/* The settings of a job, its progress and its failures. */
typedef struct answer {
    const char *job;
    int64_t pid;
    bool paused;
    char pause_file[PATH_SIZE]; /* of --pause-file, which exists; "": it does not */
    int64_t rate, threads, max_latency_ms;
    double seconds;
    char progress[SPILL_CLI_PROGRESS_TEXT];
    spill_job_failures_t passed;
    int64_t failed_ms, next_ms, gives_up_ms; /* since 1970; SPILL_DATE_UNKNOWN: never */
    spill_value_t owner;             /* in progress; BSON_TYPE_EOD: none, or it is too long */
    int64_t owner_ms;                /* since when it is; SPILL_DATE_UNKNOWN: none is */
    char log[SPILL_LOST_LINES_TEXT]; /* what the file of --log lacks; "": nothing */
    const char *failed;              /* the command was wrong; or NULL */
} answer_t;

#define ANSWER(type, member, name, ...) SPILL_FIELD(type, answer_t, member, name, __VA_ARGS__)
static const spill_field_t answer_fields[] = {
    ANSWER(TEXT, job, "job", .flags = 0),
    ANSWER(INT64, pid, "pid", .flags = 0),
    ANSWER(BOOL, paused, "paused", .flags = 0),
    ANSWER(CHARS, pause_file, "pauseFile", .flags = SPILL_FIELD_SPARSE | SPILL_FIELD_REPAIRED),
    ANSWER(INT64, rate, "rate", .flags = 0),
    ANSWER(INT64, threads, "threads", .flags = 0),
    ANSWER(INT64, max_latency_ms, "maxLatencyMs", .flags = 0),
    ANSWER(DOUBLE, seconds, "seconds", .digits = 6),
    ANSWER(CHARS, progress, "progress", .flags = SPILL_FIELD_REPAIRED),
    ANSWER(CHARS, passed.definition, "definition", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(INT64, passed.passes, "passes", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(INT64, passed.failures, "failures", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(INT64, passed.in_a_row, "failuresInARow", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(CHARS, passed.message, "lastError",
           .flags = SPILL_FIELD_OPTIONAL | SPILL_FIELD_REPAIRED),
    ANSWER(DATE, failed_ms, "lastErrorTime", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(DATE, next_ms, "nextPass", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(DATE, gives_up_ms, "givesUp", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(VALUE, owner, "owner", .flags = SPILL_FIELD_SPARSE),
    ANSWER(DATE, owner_ms, "ownerSince", .flags = SPILL_FIELD_OPTIONAL),
    ANSWER(CHARS, log, "log", .flags = SPILL_FIELD_OPTIONAL | SPILL_FIELD_REPAIRED),
    ANSWER(TEXT, failed, "failed", .flags = SPILL_FIELD_SPARSE)};
static const spill_record_t answer_record = SPILL_RECORD("answer", answer_t, answer_fields);

/* ---- the job's side -------------------------------------------------------------------------- */

/* Change the pace. Returns what is wrong with the command, or NULL. */
static const char *change_pace(spill_job_pace_t *pace, const char *command, bool has_value,
                               int64_t number)
{
    if ((strcmp(command, "pause") == 0 || strcmp(command, "resume") == 0) && !has_value) {
        atomic_store(&pace->paused, command[0] == 'p');
        return NULL;
    }
    if (strcmp(command, "rate") == 0 && has_value) {
        atomic_store(&pace->rate_per_s, number);
        return NULL;
    }
    if (strcmp(command, "max-latency") == 0 && has_value && number <= INT64_MAX / 1000) {
        atomic_store(&pace->latency_max_us, number * 1000);
        return NULL;
    }
    if (strcmp(command, "threads") == 0 && has_value) {
        if (number < 1 || number > SPILL_PARALLEL_MAX)
            return "threads must be from 1 to " THREADS_MAX;
        atomic_store(&pace->threads, (int)number);
        return NULL;
    }
    return "give status, rate N, threads N, max-latency MS, pause or resume";
}

/* Carry out a command. Returns what is wrong with it, or NULL. */
static const char *obey(const spill_cli_control_t *control, const char *command, const char *value)
{
    int64_t number = 0;
    bool has_value = value[0] != '\0';
    if (has_value && !spill_cli_parse_number(value, &number))
        return "the value must be " SPILL_CLI_NUMBER;
    if (strcmp(command, "status") == 0 && !has_value)
        return NULL;
    const char *wrong = change_pace(control->pace, command, has_value, number);
    if (!wrong && control->changed)
        control->changed(control->context, command, has_value ? &number : NULL);
    return wrong;
}

static int64_t date_of(int64_t us)
{
    return us > 0 ? us / 1000 : SPILL_DATE_UNKNOWN;
}

static void send_answer(const spill_cli_control_t *control, int client, const char *failed)
{
    SPILL_SCOPED(spill_text_release) spill_text_t text = {0};
    spill_job_owner_t longest;
    answer_t answer = {.job = control->job,
                       .pid = getpid(),
                       .paused = atomic_load(&control->pace->paused),
                       .rate = atomic_load(&control->pace->rate_per_s),
                       .threads = atomic_load(&control->pace->threads),
                       .max_latency_ms = atomic_load(&control->pace->latency_max_us) / 1000,
                       .seconds = spill_cli_progress_seconds(control->progress),
                       .failed = failed};
    spill_cli_progress_text(control->progress, answer.progress);
    spill_job_metrics_failures(control->metrics, &answer.passed);
    answer.failed_ms = date_of(answer.passed.failed_us);
    answer.next_ms = date_of(answer.passed.next_us);
    answer.gives_up_ms = date_of(answer.passed.gives_up_us);
    spill_job_metrics_longest(control->metrics, &longest);
    answer.owner = spill_job_owner_value(&longest);
    answer.owner_ms = date_of(longest.since_us);
    spill_lost_lines_text(control->metrics->log, answer.log);
    if (control->pause_file && access(control->pause_file, F_OK) == 0)
        bson_strncpy(answer.pause_file, control->pause_file, sizeof answer.pause_file);
    if (spill_text_open(&text, NULL) != SPILL_OK)
        return;
    spill_record_print(&answer_record, &answer, false, text.to);
    fputc('\n', text.to);
    if (spill_text_close(&text, NULL) == SPILL_OK)
        (void)!send(client, text.text, text.size_bytes, MSG_NOSIGNAL);
}

/* Read up to a line end. False: the client sent none in time, or too much. */
static bool read_line(int descriptor, char *line, size_t size)
{
    size_t length = 0;
    while (length + 1 < size) {
        struct pollfd ready = {.fd = descriptor, .events = POLLIN};
        if (poll(&ready, 1, CLIENT_MS) != 1)
            return false;
        ssize_t got = read(descriptor, line + length, size - 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        line[length] = '\0';
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

static void serve_client(const spill_cli_control_t *control, int client)
{
    char line[LINE_SIZE];
    if (!read_line(client, line, sizeof line))
        return;
    char *space = strchr(line, ' ');
    const char *value = space ? space + 1 : "";
    if (space)
        *space = '\0';
    send_answer(control, client, obey(control, line, value));
}

static void *serve_clients(void *argument)
{
    const spill_cli_control_t *control = argument;
    struct pollfd ready[2] = {{.fd = control->wake[0], .events = POLLIN},
                              {.fd = control->listener, .events = POLLIN}};
    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (ready[0].revents)
            return NULL;
        int client = ready[1].revents ? accept4(control->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client < 0)
            continue;
        serve_client(control, client);
        close(client);
    }
}

/* ---- the socket ------------------------------------------------------------------------------ */

static spill_code_t address_of(const char *path, struct sockaddr_un *address, spill_error_t *error)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path)
        return spill_fail(error, SPILL_INVALID, "%s: a socket's path has at most %zu bytes", path,
                          sizeof address->sun_path - 1);
    strcpy(address->sun_path, path);
    return SPILL_OK;
}

/* A connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr_un *address)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -1;
    if (connect(descriptor, (const struct sockaddr *)address, sizeof *address) == 0)
        return descriptor;
    int problem = errno;
    close(descriptor);
    errno = problem;
    return -1;
}

/* Remove the socket of a job that was killed. */
static spill_code_t clear_path(const char *path, const struct sockaddr_un *address,
                               spill_error_t *error)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? SPILL_OK : spill_fail_errno(error, errno, "%s", path);
    if (!S_ISSOCK(found.st_mode))
        return spill_fail(error, SPILL_REFUSED, "%s: exists, and is not a socket", path);
    int other = connect_to(address);
    if (other >= 0) {
        close(other);
        return spill_fail(error, SPILL_BUSY, "%s: another job is controlled there", path);
    }
    return unlink(path) == 0 ? SPILL_OK : spill_fail_errno(error, errno, "%s", path);
}

static spill_code_t listen_at(spill_cli_control_t *control, const struct sockaddr_un *address,
                              spill_error_t *error)
{
    mode_t before = umask(0177);
    control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool listens =
        control->listener >= 0 &&
        bind(control->listener, (const struct sockaddr *)address, sizeof *address) == 0 &&
        listen(control->listener, 8) == 0;
    int problem = errno;
    umask(before);
    if (listens)
        return SPILL_OK;
    if (control->listener >= 0)
        close(control->listener);
    return spill_fail_errno(error, problem, "%s", control->path);
}

spill_code_t spill_cli_control_start(spill_cli_control_t *control, spill_error_t *error)
{
    struct sockaddr_un address;
    if (!control->path)
        return SPILL_OK;
    SPILL_TRY(address_of(control->path, &address, error));
    SPILL_TRY(spill_file_refuse_in_store(control->path, error));
    SPILL_TRY(clear_path(control->path, &address, error));
    if (pipe2(control->wake, O_CLOEXEC) != 0)
        return spill_fail_errno(error, errno, "a pipe");
    spill_code_t code = listen_at(control, &address, error);
    if (code == SPILL_OK) {
        int problem = pthread_create(&control->thread, NULL, serve_clients, control);
        control->started = problem == 0;
        if (control->started)
            return SPILL_OK;
        code = spill_fail_errno(error, problem, "a thread");
        close(control->listener);
        unlink(control->path);
    }
    close(control->wake[0]);
    close(control->wake[1]);
    return code;
}

void spill_cli_control_stop(spill_cli_control_t *control)
{
    if (!control->started)
        return;
    (void)!write(control->wake[1], "", 1);
    pthread_join(control->thread, NULL);
    unlink(control->path);
    close(control->listener);
    close(control->wake[0]);
    close(control->wake[1]);
    control->started = false;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* When the job ends if the passes continue to fail. */
static void print_time_left(int64_t gives_up_ms)
{
    int64_t left_ms = gives_up_ms - spill_clock_now_us(NULL) / 1000;
    printf("gives up     %s", spill_time_text(gives_up_ms).text);
    if (left_ms > 0)
        printf(", %s left", spill_duration_text((double)left_ms / 1e3).text);
    printf(", if each pass fails until then\n");
}

/* The passes, and why the last one that failed did. */
static void print_passes(const answer_t *answer)
{
    const spill_job_failures_t *passed = &answer->passed;
    printf("passes       %" PRId64 " ended well, %" PRId64 " failed\n", passed->passes,
           passed->failures);
    if (passed->in_a_row > 0)
        printf("failing      %s in a row\n",
               spill_counted_text(passed->in_a_row, "pass", "passes").text);
    if (answer->failed_ms != SPILL_DATE_UNKNOWN)
        spill_cli_print("last error   %s  %s\n", spill_time_text(answer->failed_ms).text,
                        passed->message);
    if (answer->next_ms != SPILL_DATE_UNKNOWN)
        printf("next pass    %s\n", spill_time_text(answer->next_ms).text);
    if (answer->gives_up_ms != SPILL_DATE_UNKNOWN)
        print_time_left(answer->gives_up_ms);
    if (answer->log[0] != '\0')
        spill_cli_print("log          %s\n", answer->log);
}

/* What the job works on, so that an operator sees why it stands still. */
static void print_owner(const answer_t *answer)
{
    if (answer->owner_ms == SPILL_DATE_UNKNOWN)
        return;
    char *owner =
        answer->owner.type != BSON_TYPE_EOD ? spill_value_to_json(&answer->owner, false) : NULL;
    double seconds = (double)(spill_clock_now_us(NULL) - answer->owner_ms * 1000) / 1e6;
    spill_cli_print("owner        %s, for %s, since %s\n", owner ? owner : "(too long to show)",
                    spill_duration_text(seconds > 0 ? seconds : 0).text,
                    spill_time_text(answer->owner_ms).text);
    bson_free(owner);
}

static void print_answer(const answer_t *answer)
{
    if (answer->passed.definition[0] != '\0')
        spill_cli_print("%s: ", answer->passed.definition);
    spill_cli_print("%s, process %" PRId64 ", %s for %.0f s\n", answer->job, answer->pid,
                    answer->paused || answer->pause_file[0] != '\0' ? "paused; it has run"
                                                                    : "running",
                    answer->seconds);
    if (answer->pause_file[0] != '\0')
        spill_cli_print("pause file   %s exists: the job waits until it is deleted\n",
                        answer->pause_file);
    printf("rate         ");
    printf(answer->rate > 0 ? "%" PRId64 " a second\n" : "not limited\n", answer->rate);
    printf("threads      %" PRId64 "\n", answer->threads);
    printf("max-latency  ");
    printf(answer->max_latency_ms > 0 ? "%" PRId64 " ms\n" : "not limited\n",
           answer->max_latency_ms);
    print_owner(answer);
    print_passes(answer);
    if (answer->progress[0] != '\0')
        spill_cli_print("%s\n", answer->progress);
}

/* Print the job's answer, which is `line`. */
static spill_exit_t show(const spill_invocation_t *invocation, const char *line)
{
    answer_t answer = {.failed_ms = SPILL_DATE_UNKNOWN,
                       .owner_ms = SPILL_DATE_UNKNOWN,
                       .next_ms = SPILL_DATE_UNKNOWN,
                       .gives_up_ms = SPILL_DATE_UNKNOWN};
    spill_error_t error;
    bson_error_t ignored;
    SPILL_SCOPED(spill_free_document)
    bson_t *document = bson_new_from_json((const uint8_t *)line, -1, &ignored);
    if (!document) {
        spill_cli_say("%s: the answer is not JSON: another program listens there",
                      invocation->arguments[0]);
        return SPILL_EXIT_FAILED;
    }
    if (spill_record_read(&answer_record, document, &answer, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    if (answer.failed)
        return spill_cli_usage(invocation, "%s", answer.failed);
    if (invocation->json)
        puts(line);
    else if (!invocation->quiet)
        print_answer(&answer);
    return SPILL_EXIT_DONE;
}

static spill_exit_t run_control(const spill_invocation_t *invocation)
{
    const char *path = invocation->arguments[0];
    const char *value = invocation->argument_count > 2 ? invocation->arguments[2] : NULL;
    char line[ANSWER_SIZE];
    struct sockaddr_un address;
    spill_error_t error;
    if (address_of(path, &address, &error) != SPILL_OK)
        return spill_cli_fail(&error);
    int job = connect_to(&address);
    if (job < 0) {
        spill_cli_say("%s: no job listens there (%s): was one started with --control %s?", path,
                      strerror(errno), path);
        return SPILL_EXIT_FAILED;
    }
    int length = snprintf(line, sizeof line, "%s%s%s\n", invocation->arguments[1], value ? " " : "",
                          value ? value : "");
    bool sent = length < LINE_SIZE && send(job, line, (size_t)length, MSG_NOSIGNAL) == length;
    bool answered = sent && read_line(job, line, sizeof line);
    close(job);
    if (length >= LINE_SIZE)
        return spill_cli_usage(invocation, "the command is too long");
    if (!answered) {
        spill_cli_say("%s: the job did not answer", path);
        return SPILL_EXIT_FAILED;
    }
    return show(invocation, line);
}

const spill_command_t spill_command_control = {
    .name = "control",
    .arguments = "PATH COMMAND [VALUE]",
    .arguments_min = 2,
    .arguments_max = 3,
    .summary = "Watch and change a running migrate, sweep or consolidate",
    .text = "PATH is the socket of a job that was started with --control PATH. Only its user may "
            "use it. Commands:\n"
            "\n"
            "  status           what the job does, the owner in progress, its failures, the next "
            "pass, when it gives up, its "
            "settings\n"
            "  rate N           at most N elements or documents per second; 0: not limited\n"
            "  threads N        N threads, 1 to " THREADS_MAX "\n"
            "  max-latency MS   wait while the server takes longer for a small read; 0: never\n"
            "  pause            wait; owners and chunks in progress end first\n"
            "  resume           continue, if the file of --pause-file does not exist\n"
            "\n"
            "Each prints the settings that are then valid. They last until the job ends.\n"
            "\n"
            "Examples:\n"
            "  spillway migrate mongodb://localhost/shop plan.json --execute --control job.sock\n"
            "  spillway control job.sock status\n"
            "  spillway control job.sock rate 500",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET,
    .run = run_control};
