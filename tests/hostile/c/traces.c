/* What the tracer reads that others write: names in its folder, /proc/PID/stat, a version.info of CANN. */
#include "../../../daemon/tracer/facts.c"
#include "../../../daemon/tracer/folder.c"
#include "../../../daemon/tracer/process.c"
#include "../../../daemon/tracer/system.c"
#include "text.h"

#include <stdio.h>

uint64_t tracerNow(void) { return 1; }
void tracerHeaderChanged(void) {}
const char *tracerServedBy(enum tracerFunction function) { return ""; }

static const char folder[] = "cann", version[] = "cann/hccl/version.info"; /* in the folder of the run */

static void fileOf(const char *path, const uint8_t *data, size_t size) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, data, size) == (ssize_t)size);
    close(file);
}

static void names(const char *name) {
    tracerProcess parsed;
    victimSearch search = {0};
    memset(&parsed, 0, sizeof parsed);
    if (nameParse(name, &parsed)) CHECK(strlen(parsed.boot_id) == 36);
    consider(&search, AT_FDCWD, name, &parsed);
    CHECK(memchr(search.name, '\0', sizeof search.name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = textOf(data, size);
    traceLibrary library = {0};
    mkdir(folder, 0700);
    mkdir("cann/hccl", 0700);
    names(text);
    fileOf(version, data, size);
    if (versionRead(folder, "/", "hccl", &library)) CHECK(memchr(library.version, '\0', sizeof library.version));
    (void)startTime(version);
    libraryFill(&library, "hccl", text);
    CHECK(memchr(library.path, '\0', sizeof library.path));
    free(text);
    return 0;
}
