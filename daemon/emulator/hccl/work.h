/* The work of an operation on a stream: moves the data, at once or at each replay of the graph it was captured in. */
#ifndef WORK_H
#define WORK_H

#include "comm.h"
#include "op.h"

/* Launches the operation; keeps the communicator for as long as it can run. */
HcclResult workLaunch(comm *c, const hcclOp *op, aclrtStream stream);

#endif
