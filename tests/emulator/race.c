/* Takes the whole HBM of a chip again and again beside other processes; nobody may find that another has it too. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int aclrtSetDevice(int device);
int aclrtMalloc(void **pointer, unsigned long size, int policy);
int aclrtFree(void *pointer);

int main(int argc, char **argv) {
    int file = open(argv[1], O_RDWR);
    atomic_int *holders = mmap(NULL, sizeof *holders, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    long taken = 0, shared = 0;
    if (argc < 3 || holders == MAP_FAILED || aclrtSetDevice(0)) return 2;
    for (int i = atoi(argv[2]); i > 0; i--) {
        void *memory = NULL;
        int code = aclrtMalloc(&memory, 1 << 20, 0);
        if (code == 207001) continue;
        if (code) return 3;
        taken++;
        shared += atomic_fetch_add(holders, 1) != 0;
        atomic_fetch_sub(holders, 1);
        if (aclrtFree(memory)) return 4;
    }
    printf("%ld %ld\n", taken, shared);
    return 0;
}
