/* Binds functions that glibc 2.34 moved to the versions they had before, so that a build on a new system loads on old
 * ones (floor 2.28). There they live in libdl.so.2, which the tracer names as needed. */
#ifndef GLIBC_FLOOR_H
#define GLIBC_FLOOR_H

#if defined(__x86_64__)
#define GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GLIBC_BASE "GLIBC_2.17"
#endif

#ifdef GLIBC_BASE
__asm__(".symver dlopen,dlopen@" GLIBC_BASE);
__asm__(".symver dlclose,dlclose@" GLIBC_BASE);
__asm__(".symver dlerror,dlerror@" GLIBC_BASE);
__asm__(".symver dladdr,dladdr@" GLIBC_BASE);
__asm__(".symver dlvsym,dlvsym@" GLIBC_BASE);
#endif

#endif
