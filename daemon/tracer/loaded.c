/* Finds a function in a library that is loaded, by the library's own tables: dlopen finds it too, but wants memory for
 * that, and a process that is out of it must still get to the function it calls. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>

#include "tracer.h"

typedef struct {
    const char *strings;
    const ElfW(Sym) *symbols;
    const uint32_t *hashes; /* DT_GNU_HASH */
    const char *soname;
} tables;

typedef struct {
    const char *library, *name;
    void *found;
} search;

/* The loader relocates the addresses in the dynamic section, but not everybody's. */
static const void *addressOf(const struct dl_phdr_info *object, ElfW(Addr) address) {
    return (const void *)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

static bool tablesOf(const struct dl_phdr_info *object, tables *of) {
    const ElfW(Dyn) *entry = NULL;
    ElfW(Addr) soname = 0;
    memset(of, 0, sizeof *of);
    for (int i = 0; i < object->dlpi_phnum && entry == NULL; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_STRTAB: of->strings = addressOf(object, entry->d_un.d_ptr); break;
        case DT_SYMTAB: of->symbols = addressOf(object, entry->d_un.d_ptr); break;
        case DT_GNU_HASH: of->hashes = addressOf(object, entry->d_un.d_ptr); break;
        case DT_SONAME: soname = entry->d_un.d_val; break;
        default: break;
        }
    }
    of->soname = of->strings != NULL ? of->strings + soname : "";
    return of->strings != NULL && of->symbols != NULL && of->hashes != NULL;
}

static uint32_t hashOf(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (uint8_t)*name;
    }
    return hash;
}

static const ElfW(Sym) *symbolOf(const tables *of, const char *name) {
    uint32_t buckets = of->hashes[0], first = of->hashes[1], bloom = of->hashes[2], hash = hashOf(name);
    const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(of->hashes + 4) + bloom);
    const uint32_t *chain = bucket + buckets;
    uint32_t at = buckets != 0 ? bucket[hash % buckets] : 0;
    for (; at >= first && at != 0; at++) {
        const ElfW(Sym) *symbol = &of->symbols[at];
        bool same = (chain[at - first] | 1) == (hash | 1) && strcmp(of->strings + symbol->st_name, name) == 0;
        if (same && symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC) {
            return symbol;
        }
        if ((chain[at - first] & 1) != 0) {
            return NULL;
        }
    }
    return NULL;
}

static int look(struct dl_phdr_info *object, size_t size, void *argument) {
    search *wanted = argument;
    tables of;
    const char *slash = strrchr(object->dlpi_name, '/');
    (void)size;
    if (!tablesOf(object, &of) || (strcmp(slash != NULL ? slash + 1 : object->dlpi_name, wanted->library) != 0 &&
                                   strcmp(of.soname, wanted->library) != 0)) {
        return 0;
    }
    const ElfW(Sym) *symbol = symbolOf(&of, wanted->name);
    wanted->found = symbol != NULL ? (void *)(object->dlpi_addr + symbol->st_value) : NULL;
    return wanted->found != NULL;
}

void *tracerFindLoaded(const char *library, const char *name) {
    search wanted = {library, name, NULL};
    dl_iterate_phdr(look, &wanted);
    return wanted.found;
}
