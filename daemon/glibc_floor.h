/* The floor is glibc 2.28. Included before everything else, this binds functions that later versions moved or renewed
 * to the versions they had before, so that what is built on a new system loads on an old one. Before 2.34 they live in
 * libdl.so.2 and libpthread.so.0, which are empty shells since; CMakeLists.txt names both as needed.
 * A name that a file does not use leaves nothing behind. tests/native checks the outcome. */
#ifndef GLIBC_FLOOR_H
#define GLIBC_FLOOR_H

#if defined(__x86_64__)
#define GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GLIBC_BASE "GLIBC_2.17"
#endif

#if defined(GLIBC_BASE) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BIND(NAME, VERSION) __asm__(".symver " #NAME "," #NAME "@" VERSION)
BIND(dlopen, GLIBC_BASE);
BIND(dlclose, GLIBC_BASE);
BIND(dlerror, GLIBC_BASE);
BIND(dladdr, GLIBC_BASE);
BIND(dlvsym, GLIBC_BASE);
BIND(pthread_create, GLIBC_BASE);
BIND(pthread_join, GLIBC_BASE);
BIND(pthread_detach, GLIBC_BASE);
BIND(pthread_once, GLIBC_BASE);
BIND(pthread_sigmask, GLIBC_BASE);
BIND(pthread_attr_setstacksize, GLIBC_BASE);
BIND(pthread_mutex_trylock, GLIBC_BASE);
BIND(pthread_mutexattr_settype, GLIBC_BASE);
BIND(pthread_mutexattr_setpshared, GLIBC_BASE);
BIND(pthread_rwlock_init, GLIBC_BASE);
BIND(pthread_rwlock_rdlock, GLIBC_BASE);
BIND(pthread_rwlock_wrlock, GLIBC_BASE);
BIND(pthread_rwlock_unlock, GLIBC_BASE);
BIND(pthread_key_create, GLIBC_BASE);
BIND(pthread_setspecific, GLIBC_BASE);
BIND(pthread_getspecific, GLIBC_BASE);
#ifdef __x86_64__
BIND(pthread_condattr_setclock, "GLIBC_2.3.3");
BIND(pthread_mutexattr_setrobust, "GLIBC_2.12");
BIND(pthread_mutex_consistent, "GLIBC_2.12");
#else
BIND(pthread_condattr_setclock, GLIBC_BASE);
BIND(pthread_mutexattr_setrobust, GLIBC_BASE);
BIND(pthread_mutex_consistent, GLIBC_BASE);
#endif
#undef BIND
#endif

#endif
