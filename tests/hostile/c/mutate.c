/* A fuzzer's main where there is no libFuzzer: SEED RUNS FILE… mutates the files' bytes, without looking at coverage. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096, FILES = 256 };
static struct {
    uint8_t bytes[MOST];
    size_t size;
} seeds[FILES];
static int seedCount;
static uint64_t state;

static uint32_t roll(uint32_t below) { /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717u) >> 33) % (below ? below : 1);
}

static size_t mutated(uint8_t *to) {
    static const char odd[] = {0, '\n', ',', ';', ':', '=', '-', '.', '@', '/', '0', '9', ' ', '\x7f', '\x80', '\xff'};
    int from = (int)roll((uint32_t)seedCount);
    size_t size = seeds[from].size;
    memcpy(to, seeds[from].bytes, size);
    for (uint32_t changes = 1 + roll(8); changes > 0; changes--) {
        size_t at = roll((uint32_t)size + 1), length = roll(16);
        int other = (int)roll((uint32_t)seedCount);
        switch (roll(6)) {
            case 0: if (at < size) to[at] ^= (uint8_t)(1u << roll(8)); break;
            case 1: if (at < size) to[at] = (uint8_t)odd[roll(sizeof odd)]; break;
            case 2: if (at < size) to[at] = (uint8_t)roll(256); break;
            case 3: /* cut */
                if (at + length <= size) memmove(to + at, to + at + length, size - at - length), size -= length;
                break;
            case 4: /* repeat what is there */
                if (at + length <= size && size + length <= MOST) memmove(to + at + length, to + at, size - at), size += length;
                break;
            default: /* go on as another seed does */
                if (at < seeds[other].size) memcpy(to + at, seeds[other].bytes + at, seeds[other].size - at), size = seeds[other].size;
        }
    }
    return size;
}

int main(int argc, char **argv) {
    static uint8_t input[MOST];
    if (argc < 4) return 2;
    state = strtoull(argv[1], NULL, 10) * 2 + 1;
    for (int i = 3; i < argc && seedCount < FILES; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) return 2;
        seeds[seedCount].size = fread(seeds[seedCount].bytes, 1, MOST, file);
        seedCount++;
        fclose(file);
    }
    long runs = atol(argv[2]);
    for (long i = 0; i < runs; i++) LLVMFuzzerTestOneInput(input, mutated(input));
    printf("%ld\n", runs);
    return 0;
}
