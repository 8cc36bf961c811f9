/* The ports that HCCL takes: the host's for the ranks' meeting, and one of each NPU. */
#ifndef PORTS_H
#define PORTS_H

#include <netinet/in.h>

#include "env.h"

/* Listen on a host port for the root of device `chip`. Returns the descriptor through `fd`. */
HcclResult portsHost(const hcclEnv *env, int32_t chip, int *fd, struct sockaddr_in *address);

/* Hold the NPU's port for this process; the process's communicators on the device share it. */
HcclResult portsNpuTake(const hcclEnv *env, int32_t chip);
void portsNpuGive(int32_t chip);

#endif
