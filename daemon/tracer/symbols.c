/* Finds the real functions, and interposes dlsym for clients that ask for them by a library's handle. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "tracer.h"

typedef void *dlsymFunction(void *handle, const char *name);

_Atomic bool tracerSecondCann;
static _Atomic(dlsymFunction *) realDlsym;

/* The libraries that hold CANN's functions, wherever and however they were loaded. */
static const char *const cannLibraries[] = {"libacl_rt.so", "libascendcl.so", "libhccl.so", "libhcomm.so"};

static dlsymFunction *dlsymReal(void) {
    dlsymFunction *found = atomic_load_explicit(&realDlsym, memory_order_acquire);
    if (TRACER_LIKELY(found != NULL)) {
        return found;
    }
#ifdef GLIBC_BASE
    found = (dlsymFunction *)dlvsym(RTLD_NEXT, "dlsym", GLIBC_BASE);
#else
    found = dlsym;
#endif
    atomic_store_explicit(&realDlsym, found, memory_order_release);
    return found;
}

static void *findIn(void *handle, const char *name) {
    dlsymFunction *look = dlsymReal();
    return look != NULL && handle != NULL ? look(handle, name) : NULL;
}

/* The library around an address, already loaded; to be closed. */
static void *libraryOf(const void *address) {
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL || info.dli_fname[0] == '\0') {
        return NULL;
    }
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

enum pinned { PINNED, UNPINNED, NOT_ITS_OWN };

/* Keeps the library around `target` loaded for good: we are going to jump there whatever the client closes.
 * CANN's libraries hold C++ unique symbols, so that dlclose does not unload them anyway. */
static enum pinned pin(void *target, const char *name) {
    Dl_info info;
    if (dladdr(target, &info) == 0 || info.dli_fname == NULL) {
        return UNPINNED;
    }
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (library == NULL) {
        return UNPINNED;
    }
    bool same = findIn(library, name) == target;
    dlclose(library);
    return same ? PINNED : NOT_ITS_OWN;
}

static bool ours(const tracerSymbol *symbol, const void *found) {
    return found == symbol->global_entry || found == symbol->handle_entry;
}

static const void *baseOf(const void *address) {
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* What a function is to the dependencies of the object around `address`. Not to that object itself: another preloaded
 * library that asks what comes after its own function must not be sent back to it. */
static void *findFrom(const tracerSymbol *symbol, const void *address) {
    void *library = libraryOf(address);
    if (library == NULL) {
        return NULL;
    }
    void *found = findIn(library, symbol->name);
    dlclose(library);
    return ours(symbol, found) || baseOf(found) == baseOf(address) ? NULL : found;
}

static void *findInCann(const tracerSymbol *symbol) {
    for (size_t i = 0; i < sizeof cannLibraries / sizeof *cannLibraries; i++) {
        void *found = tracerFindLoaded(cannLibraries[i], symbol->name);
        if (found != NULL && !ours(symbol, found)) {
            return found;
        }
    }
    return NULL;
}

void *tracerFindGlobal(enum tracerFunction function, const void *caller) {
    tracerSymbol *symbol = &tracerSymbols[function];
    void *target = atomic_load_explicit(&symbol->global_target, memory_order_acquire);
    if (target != NULL) {
        return target;
    }
    /* RTLD_NEXT first, to keep what else is preloaded in the chain; it sees nothing of a CANN loaded RTLD_LOCAL. */
    target = findIn(RTLD_NEXT, symbol->name);
    if (target == NULL) {
        target = findInCann(symbol);
    }
    if (target == NULL) {
        target = findFrom(symbol, caller);
    }
    if (target == NULL) {
        target = atomic_load_explicit(&symbol->handle_target, memory_order_acquire);
    }
    dlerror(); /* our vain look-ups are not the client's errors */
    if (target != NULL && pin(target, symbol->name) == PINNED) {
        atomic_store_explicit(&symbol->global_target, target, memory_order_release);
    }
    return target;
}

static void *targetOf(enum tracerFunction function) {
    void *target = atomic_load_explicit(&tracerSymbols[function].handle_target, memory_order_acquire);
    return target != NULL ? target
                          : atomic_load_explicit(&tracerSymbols[function].global_target, memory_order_acquire);
}

void *tracerFindBeside(enum tracerFunction function, const char *name) {
    void *library = libraryOf(targetOf(function));
    void *found = findIn(library, name);
    if (library != NULL) {
        dlclose(library);
    }
    if (found == NULL) {
        dlerror();
    }
    return found;
}

const char *tracerServedBy(enum tracerFunction function) {
    Dl_info info;
    void *target = targetOf(function);
    return target != NULL && dladdr(target, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
}

#ifdef GLIBC_BASE

/* What our dlsym does: return `value`, or where `jump` is set, go on there as if we had never been called. */
typedef struct {
    void *value;
    void *jump;
} dlsymChoice;

static int functionNamed(const char *name) {
    if (name == NULL || (strncmp(name, "acl", 3) != 0 && strncmp(name, "Hccl", 4) != 0)) {
        return -1;
    }
    for (int i = 0; i < TRACER_FUNCTION_COUNT; i++) {
        if (strcmp(name, tracerSymbols[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

/* A client that asks a library for its function gets our entry in front of exactly that one. Where that cannot be
 * pinned, for want of memory, only those come there who would without us. */
static void *inFrontOf(tracerSymbol *symbol, void *found) {
    void *known = NULL;
    if (atomic_load_explicit(&symbol->handle_target, memory_order_acquire) == NULL &&
        pin(found, symbol->name) == NOT_ITS_OWN) {
        return found;
    }
    if (atomic_compare_exchange_strong(&symbol->handle_target, &known, found) || known == found) {
        return symbol->handle_entry;
    }
    if (!atomic_exchange(&tracerSecondCann, true)) {
        tracerHeaderChanged();
    }
    return found; /* an entry leads to one place only */
}

/* The two look-ups that depend on who asks. Our entry is an answer only where there is something behind it: a client
 * asks to learn whether this CANN has the function at all. */
static dlsymChoice chooseByScope(enum tracerFunction function, void *handle, const void *caller) {
    tracerSymbol *symbol = &tracerSymbols[function];
    if (tracerFindGlobal(function, caller) != NULL) {
        return (dlsymChoice){NULL, (void *)dlsymReal()};
    }
    void *found = findIn(handle == RTLD_DEFAULT ? dlopen(NULL, RTLD_LAZY) : RTLD_NEXT, symbol->name);
    if (ours(symbol, found)) {
        found = findIn(RTLD_NEXT, symbol->name); /* nothing: and dlerror says so */
    }
    return (dlsymChoice){found, NULL};
}

/* Called by the assembly below. */
__attribute__((used, visibility("hidden"))) dlsymChoice tracerDlsymChoose(void *handle, const char *name,
                                                                         const void *caller) {
    dlsymFunction *real = dlsymReal();
    int function = functionNamed(name);
    if (real == NULL || function < 0) {
        return (dlsymChoice){NULL, (void *)real};
    }
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        return chooseByScope(function, handle, caller);
    }
    tracerSymbol *symbol = &tracerSymbols[function];
    void *found = real(handle, name);
    if (found == NULL) {
        return (dlsymChoice){NULL, NULL};
    }
    if (ours(symbol, found)) { /* the main program's handle: as RTLD_DEFAULT */
        return chooseByScope(function, RTLD_DEFAULT, caller);
    }
    return (dlsymChoice){inFrontOf(symbol, found), NULL};
}

/* dlsym itself. The real one looks at its return address to learn who asks (RTLD_NEXT, RTLD_DEFAULT), so it must be
 * jumped to, not called: a compiler does so at -O2 but not at -O0, hence assembly. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym,@function\n"
        ".p2align 4\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq 24(%rsp), %rdx\n"
        "    call tracerDlsymChoose\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    testq %rdx, %rdx\n"
        "    jnz 1f\n"
        "    ret\n"
        "1:  jmp *%rdx\n"
        "    .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym,%function\n"
        ".p2align 4\n"
        "dlsym:\n"
        "    .cfi_startproc\n"
        "    hint #34\n" /* bti c */
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x2, x30\n"
        "    bl tracerDlsymChoose\n"
        "    mov x17, x1\n"
        "    cbz x1, 1f\n"
        "    ldp x0, x1, [sp, #16]\n"
        "1:  ldp x29, x30, [sp], #32\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    .cfi_def_cfa_offset 0\n"
        "    cbz x17, 2f\n"
        "    br x17\n"
        "2:  ret\n"
        "    .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#endif

#endif
