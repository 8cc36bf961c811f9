/* The ports that HCCL takes: the host's for the ranks' meeting, and one of each NPU.
 * The emulated node and each of its NPUs have an address in 127/8, made of the node's name: emulated nodes on one
 * machine do not disturb each other, and on one node whoever comes second fails as on hardware. */
#include "ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_PORT = 60000, HOST_PORTS = 16, NPU_PORT = 16666, BACKLOG = 128, CHIPS_MAX = 250 };
enum { HOST_ADDRESS = 254 }; /* the last byte; a chip's is its number + 1 */

/* 127.a.b.last, a and b from the name of the node. a is 64 and more: 127.0.0.1 is not ours. */
static struct sockaddr_in nodeAddress(uint8_t last) {
    char fallback[64];
    const char *node = getenv("CAPTURE_CANARY_EMULATE_NODE");
    if (node == NULL || node[0] == '\0') {
        snprintf(fallback, sizeof fallback, "/dev/shm/capture-canary-emulated-%u", (unsigned)getuid());
        node = fallback;
    }
    uint32_t hash = 2166136261U; /* FNV-1a */
    for (const char *c = node; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619U;
    }
    hash ^= hash >> 16;
    uint32_t address = 127U << 24 | (64U + (hash >> 8 & 127U)) << 16 | (hash & 255U) << 8 | last;
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
}

/* HCCL_E_UNAVAIL where the port is taken. */
static HcclResult listenOn(struct sockaddr_in *address, uint16_t port, int *fd) {
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) {
        return HCCL_E_SYSCALL;
    }
    int on = 1; /* connections of the dead in TIME_WAIT do not hold the port */
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    address->sin_port = htons(port);
    socklen_t size = sizeof *address;
    if (bind(s, (struct sockaddr *)address, sizeof *address) != 0 || listen(s, BACKLOG) != 0 ||
        getsockname(s, (struct sockaddr *)address, &size) != 0) {
        HcclResult result = errno == EADDRINUSE ? HCCL_E_UNAVAIL : HCCL_E_TCP_CONNECT;
        close(s);
        return result;
    }
    *fd = s;
    return HCCL_SUCCESS;
}

static HcclResult listenInRanges(const portRanges *ports, struct sockaddr_in *address, int *fd) {
    for (uint32_t i = 0; i < ports->count; i++) {
        for (uint32_t port = ports->range[i].min; port <= ports->range[i].max; port++) {
            HcclResult result = listenOn(address, (uint16_t)port, fd);
            if (result != HCCL_E_UNAVAIL) {
                return result;
            }
        }
    }
    return HCCL_E_UNAVAIL;
}

static HcclResult taken(HcclResult result, const char *code, const char *adapter, const struct sockaddr_in *address,
                        const portRanges *ports) {
    if (result == HCCL_SUCCESS) {
        return result;
    }
    if (result != HCCL_E_UNAVAIL) {
        return hcclFail(result, "The %s network adapter socket cannot listen: %s", adapter, HcclGetErrorString(result));
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address->sin_addr, ip, sizeof ip);
    return hcclFail(result,
                    "%s: Failed to enable listening for the %s network adapter socket. Reason: The IP address %s and "
                    "port %u to %u have already been bound.",
                    code, adapter, ip, ports->range[0].min, ports->range[ports->count - 1].max);
}

HcclResult portsHost(const hcclEnv *env, int32_t chip, int *fd, struct sockaddr_in *address) {
    portRanges ports = env->hostPorts;
    if (!ports.set) {
        ports.count = 1;
        bool based = env->basePort >= 0;
        ports.range[0].min = (uint16_t)(based ? env->basePort + chip : HOST_PORT);
        ports.range[0].max = (uint16_t)(based ? env->basePort + chip : HOST_PORT + HOST_PORTS - 1);
    }
    *address = nodeAddress(HOST_ADDRESS);
    return taken(listenInRanges(&ports, address, fd), "EI0019", "host", address, &ports);
}

static struct {
    int fd;
    int users;
} npus[CHIPS_MAX];
static pthread_mutex_t npusLock = PTHREAD_MUTEX_INITIALIZER;

HcclResult portsNpuTake(const hcclEnv *env, int32_t chip) {
    if (chip < 0 || chip >= CHIPS_MAX) {
        return HCCL_E_PARA;
    }
    portRanges ports = env->npuPorts;
    if (!ports.set) {
        ports.count = 1;
        ports.range[0].min = ports.range[0].max = NPU_PORT;
    }
    HcclResult result = HCCL_SUCCESS;
    pthread_mutex_lock(&npusLock);
    if (npus[chip].users == 0) {
        struct sockaddr_in address = nodeAddress((uint8_t)(chip + 1));
        result = taken(listenInRanges(&ports, &address, &npus[chip].fd), "EI0020", "NPU", &address, &ports);
    }
    npus[chip].users += result == HCCL_SUCCESS;
    pthread_mutex_unlock(&npusLock);
    return result;
}

void portsNpuGive(int32_t chip) {
    pthread_mutex_lock(&npusLock);
    if (--npus[chip].users == 0) {
        close(npus[chip].fd);
    }
    pthread_mutex_unlock(&npusLock);
}
