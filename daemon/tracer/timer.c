/* Clocks: CLOCK_MONOTONIC for captures, the processor's counter register for the time inside copies. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tracer.h"

enum tracerTimer tracerTimer = TIMER_OFF;
static _Atomic uint64_t timerBaseTicks;
static _Atomic uint64_t timerBaseNs;

uint64_t tracerNow(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The counter serves as a clock only where it runs at one rate on all cores and in all power states. */
static bool counterIsSteady(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    return true; /* architected so */
#else
    return false;
#endif
}

void tracerTimerChoose(const char *wish) {
    if (wish != NULL && strcmp(wish, "0") == 0) {
        tracerTimer = TIMER_OFF;
    } else if (wish != NULL && strcmp(wish, "clock") == 0) {
        tracerTimer = TIMER_CLOCK;
    } else {
        tracerTimer = counterIsSteady() ? TIMER_COUNTER : TIMER_CLOCK;
    }
}

void tracerTimerStart(void) {
    atomic_store_explicit(&timerBaseTicks, tracerCounter(), memory_order_relaxed);
    atomic_store_explicit(&timerBaseNs, tracerNow(), memory_order_relaxed);
}

/* The counter's rate is what it did since the start against CLOCK_MONOTONIC: no calibration loop, and the longer the
 * process runs the better. */
uint64_t tracerTimerNanoseconds(uint64_t ticks) {
    if (tracerTimer != TIMER_COUNTER) {
        return ticks;
    }
    uint64_t ran_ticks = tracerCounter() - atomic_load_explicit(&timerBaseTicks, memory_order_relaxed);
    uint64_t ran_ns = tracerNow() - atomic_load_explicit(&timerBaseNs, memory_order_relaxed);
    return ran_ticks == 0 ? 0 : (uint64_t)((double)ticks * ((double)ran_ns / (double)ran_ticks));
}
