/* Which tags of which communicators a captured graph uses, so that they can go when the graph is destroyed. */
#ifndef GRAPHS_H
#define GRAPHS_H

#include "comm.h"

/* Note a tag of the graph; asks the runtime to tell of the graph's end, where it can. */
HcclResult graphsNote(void *model, comm *c, const char *tag);

/* The communicator ends: its tags need no more care. */
void graphsForgetComm(comm *c);

#endif
