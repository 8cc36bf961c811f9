/* The tags of a communicator: which operations it has resources for. */
#ifndef TAGS_H
#define TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAG_MAX = 256 };

typedef struct {
    char **slot; /* open addressing; NULL where free */
    size_t capacity;
    size_t count;
} tagSet;

bool tagsHave(const tagSet *tags, const char *tag);
bool tagsAdd(tagSet *tags, const char *tag); /* false: out of memory */
void tagsFree(tagSet *tags);

#endif
