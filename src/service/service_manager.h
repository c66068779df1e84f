/* Messages to systemd, for a unit of Type=notify (sd_notify(3)). */
#ifndef SPILL_SERVICE_SERVICE_MANAGER_H
#define SPILL_SERVICE_SERVICE_MANAGER_H

/* Send a state such as "READY=1". Without $NOTIFY_SOCKET it does nothing. */
void spill_service_manager_notify(const char *state);

#endif
