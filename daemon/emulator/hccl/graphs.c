/* Which tags of which communicators a captured graph uses, so that they can go when the graph is destroyed. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "plf.h"

typedef struct user {
    struct user *next;
    comm *comm;
    char **tags;
    size_t count, capacity;
} user;

typedef struct graph {
    struct graph *next;
    void *model;
    user *users;
} graph;

static graph *graphs;
static pthread_mutex_t graphsLock = PTHREAD_MUTEX_INITIALIZER;

static void freeUser(user *u) {
    for (size_t i = 0; i < u->count; i++) {
        free(u->tags[i]);
    }
    free(u->tags);
    commDrop(u->comm);
    free(u);
}

static graph *unlinkGraph(void *argument) {
    pthread_mutex_lock(&graphsLock);
    graph **at = &graphs;
    while (*at != NULL && *at != argument) {
        at = &(*at)->next;
    }
    graph *found = *at;
    if (found != NULL) {
        *at = found->next;
    }
    pthread_mutex_unlock(&graphsLock);
    return found;
}

/* Called by the runtime as the graph goes. */
static void graphDestroyed(void *argument) {
    graph *g = unlinkGraph(argument);
    while (g != NULL && g->users != NULL) {
        user *u = g->users;
        g->users = u->next;
        pthread_mutex_lock(&u->comm->lock);
        if (!atomic_load(&u->comm->destroyed) && u->comm->lists != NULL) {
            (void)resourcesForget(u->comm->lists, (const char *const *)u->tags, u->count);
        }
        pthread_mutex_unlock(&u->comm->lock);
        freeUser(u);
    }
    free(g);
}

static graph *findGraph(void *model) {
    for (graph *g = graphs; g != NULL; g = g->next) {
        if (g->model == model) {
            return g;
        }
    }
    return NULL;
}

static HcclResult addGraph(void *model, graph **added) {
    graph *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return HCCL_E_MEMORY;
    }
    HcclResult result = hrtOnGraphDestroy(model, graphDestroyed, g);
    if (result != HCCL_SUCCESS) {
        free(g);
        return result;
    }
    g->model = model;
    g->next = graphs;
    graphs = g;
    *added = g;
    return HCCL_SUCCESS;
}

static user *userOf(graph *g, comm *c) {
    for (user *u = g->users; u != NULL; u = u->next) {
        if (u->comm == c) {
            return u;
        }
    }
    user *u = calloc(1, sizeof *u);
    if (u != NULL) {
        commKeep(c);
        *u = (user){.next = g->users, .comm = c};
        g->users = u;
    }
    return u;
}

static HcclResult addTag(user *u, const char *tag) {
    if (u->count == u->capacity) {
        size_t capacity = u->capacity == 0 ? 16 : u->capacity * 2;
        char **tags = realloc(u->tags, capacity * sizeof *tags);
        if (tags == NULL) {
            return HCCL_E_MEMORY;
        }
        u->tags = tags;
        u->capacity = capacity;
    }
    u->tags[u->count] = strdup(tag);
    if (u->tags[u->count] == NULL) {
        return HCCL_E_MEMORY;
    }
    u->count++;
    return HCCL_SUCCESS;
}

HcclResult graphsNote(void *model, comm *c, const char *tag) {
    pthread_mutex_lock(&graphsLock);
    graph *g = findGraph(model);
    HcclResult result = g == NULL ? addGraph(model, &g) : HCCL_SUCCESS;
    if (result == HCCL_SUCCESS) {
        user *u = userOf(g, c);
        result = u == NULL ? HCCL_E_MEMORY : addTag(u, tag);
    }
    pthread_mutex_unlock(&graphsLock);
    return result == HCCL_E_NOT_SUPPORT ? HCCL_SUCCESS : result; /* CANN 8.5 has no such call */
}

void graphsForgetComm(comm *c) {
    user *gone = NULL;
    pthread_mutex_lock(&graphsLock);
    for (graph *g = graphs; g != NULL; g = g->next) {
        for (user **at = &g->users; *at != NULL;) {
            user *u = *at;
            if (u->comm != c) {
                at = &u->next;
                continue;
            }
            *at = u->next;
            u->next = gone;
            gone = u;
        }
    }
    pthread_mutex_unlock(&graphsLock);
    while (gone != NULL) {
        user *next = gone->next;
        freeUser(gone);
        gone = next;
    }
}
