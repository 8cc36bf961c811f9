/* The trace file, version 1: a header of facts about one process, then a ring of fixed records.
 * Written by the tracer, read by capture_canary.trace (which mirrors it; tests/trace checks that they agree).
 * Numbers are in the byte order of the host that wrote them; `byte_order` tells which. */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <stdint.h>

#define TRACE_MAGIC "CCTRACE\n"
#define TRACE_VERSION 1u
#define TRACE_BYTE_ORDER 0x01020304u
#define TRACE_FILE_BYTES (1u << 20) /* the cap of a file */
#define TRACE_FOLDER_FILES 256      /* the cap of a folder */

#define TRACE_COMMUNICATORS 32       /* the newest are kept, at (id - 1) % TRACE_COMMUNICATORS */
#define TRACE_LIBRARIES 3
#define TRACE_RECORD_COMMUNICATORS 4 /* the first ones used in a capture; more set TRACE_MORE_COMMUNICATORS */
#define TRACE_COPY_KINDS 8           /* aclrtMemcpyKind; what is above counts as the last */
#define TRACE_COLLECTIVE_KINDS 16

/* Kinds of collectives, by the name of the HCCL function that was called. */
enum traceCollective {
    TRACE_ALL_REDUCE,
    TRACE_ALL_GATHER,
    TRACE_ALL_GATHER_V,
    TRACE_REDUCE_SCATTER,
    TRACE_REDUCE_SCATTER_V,
    TRACE_BROADCAST,
    TRACE_SCATTER,
    TRACE_REDUCE,
    TRACE_ALL_TO_ALL,
    TRACE_ALL_TO_ALL_V,
    TRACE_ALL_TO_ALL_VC,
    TRACE_SEND,
    TRACE_RECV,
    TRACE_BATCH_SEND_RECV,
    TRACE_COLLECTIVES
};

enum traceRecordKind {
    TRACE_BEGIN = 1, /* a capture is about to begin */
    TRACE_END = 2,   /* it has ended, or its begin failed (TRACE_BEGIN_FAILED) */
    TRACE_EAGER = 3, /* a collective outside captures returned (the first ones, then at powers of two) */
    TRACE_EXIT = 4   /* the process ends in order */
};

enum traceRecordFlags {
    TRACE_BEGIN_FAILED = 1 << 0,
    TRACE_OVERLAPPED = 1 << 1,        /* another capture was active at some time of this one */
    TRACE_AMBIGUOUS = 1 << 2,         /* and something counted here may belong to that one */
    TRACE_MORE_COMMUNICATORS = 1 << 3 /* collectives on further communicators are in `collectives` only */
};

enum traceFileFlags {
    TRACE_INERT_BOOT_LOOP = 1 << 0, /* two earlier processes armed and never ended a capture: nothing is recorded */
    TRACE_TIMED = 1 << 1,           /* time in copies is measured */
    TRACE_SECOND_CANN = 1 << 2      /* a second copy of CANN is loaded, and is not watched */
};

enum traceModeState {
    TRACE_HCCL_NOT_STARTED = 0,
    TRACE_MODE_UNSET = 1, /* HCCL_OP_EXPANSION_MODE was not in the environment when HCCL started */
    TRACE_MODE_SET = 2,
    TRACE_MODE_TOO_LONG = 3
};

typedef struct {
    uint32_t id;     /* 1 is the first communicator of the process; 0: an empty slot */
    uint32_t ranks;  /* 0: not known */
    uint32_t rank;
    uint32_t mode;   /* hcclOpExpansionMode of its configuration; 0: left to the environment */
    uint64_t created_ns;
} traceCommunicator;

typedef struct {
    char package[32];  /* runtime, hccl, hcomm */
    char version[64];  /* the line Version= of its version.info; empty: not found */
    char path[416];    /* the library that serves its functions; empty: not loaded */
} traceLibrary;

typedef struct {
    char magic[8];
    uint32_t byte_order;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t record_bytes;
    uint32_t record_capacity;
    uint32_t checksum; /* CRC-32 of the header with this field 0 */
    uint32_t pid;
    uint32_t flags;
    uint64_t start_time; /* clock ticks since boot, field 22 of /proc/PID/stat */
    uint64_t pid_namespace;
    char boot_id[40];
    char mode[40];
    uint32_t mode_state;
    uint32_t communicators_made;
    uint64_t hccl_started_ns; /* CLOCK_MONOTONIC */
    uint8_t reserved[104];
    traceCommunicator communicators[TRACE_COMMUNICATORS];
    traceLibrary libraries[TRACE_LIBRARIES];
    uint8_t reserved_end[1536];
} traceHeader;

typedef struct {
    uint32_t checksum; /* CRC-32 of what follows */
    uint16_t kind;
    uint16_t flags;
    uint64_t sequence; /* from 1; the record lies in slot (sequence - 1) % record_capacity */
    uint64_t order;    /* of the capture in its process, from 1 */
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;   /* 0 in TRACE_BEGIN */
    uint64_t h2d_copies;
    uint64_t h2d_bytes;
    uint64_t copy_ns;
    int32_t device; /* -1: not known */
    uint32_t thread;
    int32_t code; /* what CaptureEnd returned, or CaptureBegin where that failed */
    uint32_t graphs_alive;
    uint32_t other_copies[TRACE_COPY_KINDS]; /* synchronous copies of the other kinds; index 1 (H2D) stays 0 */
    uint32_t collectives[TRACE_COLLECTIVE_KINDS];
    struct {
        uint32_t id;
        uint32_t collectives;
    } communicators[TRACE_RECORD_COMMUNICATORS];
    /* Totals of the process outside captures, when the record was written. */
    uint64_t eager_copies[TRACE_COPY_KINDS];
    uint64_t eager_h2d_bytes;
    uint64_t eager_copy_ns;
    uint64_t eager_collectives;
    uint64_t lost; /* captures that could not be followed: too many at once, or abandoned */
} traceRecord;

#define TRACE_RECORD_CAPACITY ((TRACE_FILE_BYTES - sizeof(traceHeader)) / sizeof(traceRecord))

_Static_assert(sizeof(traceHeader) == 4096, "the header is a contract");
_Static_assert(sizeof(traceRecord) == 304, "the record is a contract");

#endif
