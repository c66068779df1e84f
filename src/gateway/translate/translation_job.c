/* A command in a worker thread, which calls upstream through the loop. */
#include "gateway/translate/translation_job.h"

#include "gateway/relay/classify.h"
#include "util/clock.h"
#include "util/error.h"

#include <stddef.h>
#include <string.h>

struct spill_translation_job {
    spill_client_connection_t connection; /* first: `call` finds the job by it */
    spill_work_t work;
    spill_post_t call_post, done_post;
    spill_gateway_t *gateway;
    spill_loop_t *loop;
    const spill_translation_host_t *host;
    void *owner;

    spill_buffer_t message;
    spill_wire_message_t read;
    bson_t reply;
    bool close;
    size_t reserved;

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t wake;
    spill_buffer_t request;
    int32_t request_id;
    spill_buffer_t answer;
    bool answered;
    const char *broken; /* why the upstream connection broke */
};

/* ---- calls upstream -------------------------------------------------------------------------- */

static spill_translation_job_t *job_of_post(spill_post_t *post)
{
    return (spill_translation_job_t *)((char *)post - offsetof(spill_translation_job_t, call_post));
}

void spill_translation_job_reply(spill_translation_job_t *job, spill_buffer_t *message)
{
    pthread_mutex_lock(&job->lock);
    job->answer = *message;
    *message = (spill_buffer_t)SPILL_BUFFER_INIT;
    job->answered = true;
    pthread_mutex_unlock(&job->lock);
    pthread_cond_signal(&job->wake); /* this thread alone frees the job */
}

void spill_translation_job_break(spill_translation_job_t *job, const char *why)
{
    pthread_mutex_lock(&job->lock);
    job->broken = why;
    pthread_cond_signal(&job->wake);
    pthread_mutex_unlock(&job->lock);
}

/* On the loop's thread: send the request. */
static void send_request(spill_post_t *post)
{
    spill_translation_job_t *job = job_of_post(post);
    if (!job->broken && !job->host->send(job->owner, job->request_id, &job->request))
        spill_translation_job_break(job, "the upstream connection is broken");
}

static spill_code_t read_answer(spill_translation_job_t *job, bson_t *reply, spill_error_t *error)
{
    spill_wire_message_t message;
    SPILL_TRY(spill_wire_read(job->answer.data, job->answer.size, &message, error));
    if (message.header.opcode != SPILL_WIRE_MSG || message.header.response_to != job->request_id)
        return spill_fail(error, SPILL_PARSE, "the server's reply belongs to another request");
    bson_copy_to(&message.body, reply);
    return SPILL_OK;
}

/* Why the connection broke, or NULL. After that, nothing more is posted to the loop. */
static const char *broken_by(spill_translation_job_t *job)
{
    pthread_mutex_lock(&job->lock);
    const char *broken = job->broken;
    pthread_mutex_unlock(&job->lock);
    return broken;
}

/* On the worker's thread. */
static spill_code_t call_upstream(spill_client_connection_t *connection, const bson_t *body,
                                  const spill_wire_sequence_t *sequences, size_t count,
                                  bson_t *reply, spill_error_t *error)
{
    spill_translation_job_t *job = (spill_translation_job_t *)connection;
    const char *broken = broken_by(job);
    if (broken)
        return spill_fail(error, SPILL_IO, "%s", broken);
    spill_buffer_clear(&job->request);
    job->request_id++;
    if (!spill_wire_write(&job->request, job->request_id, 0, 0, body, sequences, count))
        return spill_fail(error, SPILL_TOO_BIG, "the command is too large for a message");
    job->answered = false;
    job->call_post.run = send_request;
    spill_loop_post(job->loop, &job->call_post);
    pthread_mutex_lock(&job->lock);
    while (!job->answered && !job->broken)
        pthread_cond_wait(&job->wake, &job->lock);
    broken = job->answered ? NULL : job->broken;
    pthread_mutex_unlock(&job->lock);
    if (broken)
        return spill_fail(error, SPILL_IO, "%s", broken);
    spill_code_t code = read_answer(job, reply, error);
    spill_buffer_release(&job->answer);
    return code;
}

static bool reserve_reply(spill_client_connection_t *connection, size_t bytes)
{
    spill_translation_job_t *job = (spill_translation_job_t *)connection;
    if (!spill_limits_reserve(job->gateway->limits, bytes))
        return false;
    job->reserved += bytes;
    return true;
}

/* ---- the worker ------------------------------------------------------------------------------ */

static void report_done(spill_post_t *post)
{
    spill_translation_job_t *job =
        (spill_translation_job_t *)((char *)post - offsetof(spill_translation_job_t, done_post));
    job->host->done(job->owner);
}

bool spill_translation_job_unanswered(const spill_translation_job_t *job)
{
    return (job->read.flags & SPILL_WIRE_MORE_TO_COME) != 0;
}

spill_metrics_class_t spill_translation_job_class(const spill_translation_job_t *job)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, &job->read.body) || !bson_iter_next(&iter))
        return SPILL_METRICS_OTHER;
    switch (spill_command_kind(bson_iter_key(&iter))) {
    case SPILL_COMMAND_READ:
    case SPILL_COMMAND_AGGREGATE:
        return SPILL_METRICS_READ;
    case SPILL_COMMAND_INSERT:
    case SPILL_COMMAND_WRITE:
    case SPILL_COMMAND_BULK:
        return SPILL_METRICS_WRITE;
    default:
        return SPILL_METRICS_OTHER;
    }
}

static void run_job(spill_work_t *work)
{
    spill_translation_job_t *job =
        (spill_translation_job_t *)((char *)work - offsetof(spill_translation_job_t, work));
    spill_client_command_t command;
    spill_error_t error;
    int64_t started_us = spill_clock_now_us(NULL);
    if (spill_client_command_read(&job->read, &command, &error) == SPILL_OK) {
        spill_translate_run(job->gateway->served, &job->connection, &command, &job->reply,
                            &job->close);
    } else {
        job->close = true;
        bson_init(&job->reply);
    }
    spill_metrics_duration(&job->gateway->metrics, spill_translation_job_class(job),
                           spill_clock_now_us(NULL) - started_us);
    job->done_post.run = report_done;
    spill_loop_post(job->loop, &job->done_post);
}

spill_translation_job_t *spill_translation_job_start(spill_gateway_t *gateway, spill_loop_t *loop,
                                                     const spill_translation_host_t *host,
                                                     void *owner, spill_buffer_t *message,
                                                     spill_client_connection_t *connection)
{
    spill_translation_job_t *job = bson_malloc0(sizeof *job);
    job->connection = *connection;
    job->connection.call = call_upstream;
    job->connection.reserve = reserve_reply;
    job->connection.activity = gateway->activity;
    job->gateway = gateway;
    job->loop = loop;
    job->host = host;
    job->owner = owner;
    job->message = *message;
    *message = (spill_buffer_t)SPILL_BUFFER_INIT;
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->wake, NULL);
    if (spill_wire_read(job->message.data, job->message.size, &job->read, NULL) != SPILL_OK)
        job->close = true; /* it was read before: this does not happen */
    job->work.run = run_job;
    spill_workers_add(gateway->workers, &job->work);
    return job;
}

void spill_translation_job_take(spill_translation_job_t *job, int32_t *request_id, bool *unanswered,
                                bson_t *reply, bool *close, bool *changed, size_t *reserved)
{
    *request_id = job->read.header.request_id;
    *unanswered = spill_translation_job_unanswered(job);
    *close = job->close;
    *changed = job->connection.changed;
    *reserved = job->reserved;
    bson_steal(reply, &job->reply);
    spill_buffer_release(&job->message);
    spill_buffer_release(&job->request);
    spill_buffer_release(&job->answer);
    pthread_cond_destroy(&job->wake);
    pthread_mutex_destroy(&job->lock);
    bson_free(job);
}
