/*
 * End a program that was asked to end (Ctrl-C, SIGTERM) while its server is away. The driver waits
 * for a server for 20 seconds, and for an answer longer; no signal ends such a wait.
 *
 * A thread of its own waits for the signal. Half a second later it asks each server of the command
 * for a hello, on a new connection. If one does not answer within half a second, the thread ends
 * the process like SIGKILL would, which every command is prepared for. Requests on their way have
 * an unknown outcome. As long as all servers answer, the command ends by itself.
 */
#ifndef SPILL_CLI_SERVER_AWAY_H
#define SPILL_CLI_SERVER_AWAY_H

/* Note a server that the command uses, and start the thread. A text that is no server's URI: no
 * effect. */
void spill_cli_note_server(const char *uri);

/*
 * Call `last` before the process is ended for this reason; NULL: call nothing. Returns after a call
 * in progress. `reason` is for people.
 */
typedef void (*spill_cli_last_fn)(void *context, const char *reason);
void spill_cli_before_end(spill_cli_last_fn last, void *context);

/* From now on wait for the servers: the command must put something right before it ends. */
void spill_cli_keep_waiting(void);

#endif
