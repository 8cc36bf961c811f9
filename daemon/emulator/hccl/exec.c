/* An operation from call to launch: checks, engine, resources, work on the stream. */
#include <stdio.h>
#include <stdlib.h>

#include "algorithm.h"
#include "graphs.h"
#include "plf.h"
#include "reduce.h"
#include "work.h"

static HcclResult checkRoot(const comm *c, const hcclOp *op) {
    bool rooted = op->kind == OP_REDUCE || op->kind == OP_BROADCAST || op->kind == OP_SCATTER;
    bool paired = op->kind == OP_SEND || op->kind == OP_RECV;
    if ((rooted || paired) && (op->root >= c->ranks || (paired && op->root == c->rank))) {
        return hcclFail(HCCL_E_PARA, "EI0003: %s: rank %u is invalid in a communicator of %u ranks, here rank %u",
                        opName(op->kind), op->root, c->ranks, c->rank);
    }
    for (uint32_t i = 0; i < op->nItems; i++) {
        if (op->items[i].remoteRank >= c->ranks || dtypeSize(op->items[i].dataType) == 0) {
            return hcclFail(HCCL_E_PARA, "EI0003: %s: item %u is invalid", opName(op->kind), i);
        }
    }
    return HCCL_SUCCESS;
}

static bool isReduction(opKind kind) {
    return kind == OP_ALLREDUCE || kind == OP_REDUCE || kind == OP_REDUCE_SCATTER || kind == OP_REDUCE_SCATTER_V;
}

static HcclResult check(const comm *c, const hcclOp *op) {
    if (dtypeSize(op->type) == 0 || dtypeSize(op->recvType) == 0) {
        return hcclFail(HCCL_E_NOT_SUPPORT, "EI0003: %s: data type %d is not supported", opName(op->kind),
                        (int)op->type);
    }
    if (isReduction(op->kind) && !reduceSupported(op->type, op->reduce)) {
        return hcclFail(HCCL_E_NOT_SUPPORT, "EI0003: %s: reduction %d of data type %d is not supported",
                        opName(op->kind), (int)op->reduce, (int)op->type);
    }
    if (op->count > INT64_MAX / 16) {
        return hcclFail(HCCL_E_PARA, "EI0003: %s: count %llu is invalid", opName(op->kind),
                        (unsigned long long)op->count);
    }
    return checkRoot(c, op);
}

/* The communicator's buffers come with its first operation. Nothing touches them: they cost HBM, not memory. */
static HcclResult takeBuffers(comm *c) {
    for (int i = 0; i < 2; i++) {
        if (c->buffers[i] == NULL) {
            HcclResult result = hrtMalloc(&c->buffers[i], c->bufferBytes, false);
            if (result != HCCL_SUCCESS) {
                c->buffers[i] = NULL;
                return hcclFail(result, "EI0007: Failed to allocate %llu bytes of device memory for communicator %s",
                                (unsigned long long)c->bufferBytes, c->name);
            }
        }
    }
    return HCCL_SUCCESS;
}

/* A captured operation whose tag is known gets a new one: always up to hcomm 9.0, later over RoCE only. */
static HcclResult renameCaptured(comm *c, algorithm *a, void *model, listRules rules) {
    bool roce = emuSettingsGet()->roce != 0;
    bool hears = !rules.before90; /* of a graph's end */
    if (!tagsHave(&c->captured, a->tag)) {
        if (!tagsAdd(&c->captured, a->tag)) {
            return HCCL_E_MEMORY;
        }
        return a->zeroCopy && hears ? graphsNote(model, c, a->tag) : HCCL_SUCCESS;
    }
    if (rules.growth != EMU_GROWS && !roce) {
        return HCCL_SUCCESS;
    }
    char tag[TAG_MAX];
    if (snprintf(tag, sizeof tag, "%s%llu", a->tag, (unsigned long long)++c->captures) >= TAG_MAX) {
        return HCCL_E_INTERNAL;
    }
    snprintf(a->tag, sizeof a->tag, "%s", tag);
    return rules.growth != EMU_GROWS ? graphsNote(model, c, a->tag) : HCCL_SUCCESS;
}

static listRules rulesOf(const emuSettings *settings) {
    int major = 0;
    (void)sscanf(settings->hcomm, "%d", &major);
    return (listRules){.growth = settings->growth, .before90 = major < 9};
}

static HcclResult prepareAicpu(comm *c, algorithm *a, bool captured, void *model) {
    const emuSettings *settings = emuSettingsGet();
    listRules rules = rulesOf(settings);
    if (settings->soc == EMU_SOC_950) {
        return HCCL_SUCCESS; /* its code is another, and was not analysed: no growth is claimed */
    }
    if (c->lists == NULL && (c->lists = resourcesNew(rules)) == NULL) {
        return HCCL_E_MEMORY;
    }
    HcclResult result = captured ? renameCaptured(c, a, model, rules) : HCCL_SUCCESS;
    if (result != HCCL_SUCCESS) {
        return result;
    }
    tagRequest request = {.tag = a->tag,
                          .peers = a->peers,
                          .nPeers = a->nPeers,
                          .scratch = a->scratch,
                          .roce = settings->roce != 0,
                          .captured = captured};
    return resourcesPrepare(c->lists, &request);
}

static HcclResult execute(comm *c, const hcclOp *op, aclrtStream stream) {
    HcclResult result = check(c, op);
    if (result != HCCL_SUCCESS) {
        return result;
    }
    if (atomic_load(&c->destroyed)) {
        return hcclFail(HCCL_E_PTR, "EI0003: communicator %s is destroyed", c->name);
    }
    if ((result = atomic_load(&c->asyncError)) != HCCL_SUCCESS) {
        return hcclFail(result, "communicator %s has failed before", c->name);
    }
    void *model = NULL;
    bool captured = emuStreamCapturing(stream, &model);
    if (c->ranks > 1) {
        algorithm a;
        if ((result = algorithmChoose(c, op, captured, &a)) == HCCL_SUCCESS) {
            result = takeBuffers(c);
        }
        if (result == HCCL_SUCCESS && a.engine == ENGINE_AICPU) {
            result = prepareAicpu(c, &a, captured, model);
        }
        free(a.peers);
    }
    return result == HCCL_SUCCESS ? workLaunch(c, op, stream) : result;
}

HcclResult HcclExecInner(const char *function, const hcclOp *op, HcclComm handle, aclrtStream stream) {
    int fault = emuFault(function);
    if (fault != 0) {
        return hcclFail((HcclResult)fault, "%s fails as CAPTURE_CANARY_EMULATE_FAULT says", function);
    }
    comm *c = commTake(handle);
    if (c == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: %s: the communicator is NULL or destroyed", function);
    }
    pthread_mutex_lock(&c->lock);
    HcclResult result = execute(c, op, stream);
    pthread_mutex_unlock(&c->lock);
    commDrop(c);
    return result;
}
