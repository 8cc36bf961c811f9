/* The tags of a communicator: which operations it has resources for. */
#include "tags.h"

#include <stdlib.h>
#include <string.h>

static size_t hashOf(const char *tag) {
    size_t hash = 1469598103934665603U; /* FNV-1a */
    for (; *tag != '\0'; tag++) {
        hash = (hash ^ (unsigned char)*tag) * 1099511628211U;
    }
    return hash;
}

/* Where the tag is, or where it would go. */
static char **find(const tagSet *tags, const char *tag) {
    size_t at = hashOf(tag) & (tags->capacity - 1);
    while (tags->slot[at] != NULL && strcmp(tags->slot[at], tag) != 0) {
        at = (at + 1) & (tags->capacity - 1);
    }
    return &tags->slot[at];
}

bool tagsHave(const tagSet *tags, const char *tag) {
    return tags->capacity != 0 && *find(tags, tag) != NULL;
}

static bool grow(tagSet *tags) {
    tagSet bigger = {.capacity = tags->capacity == 0 ? 64 : tags->capacity * 2, .count = tags->count};
    bigger.slot = calloc(bigger.capacity, sizeof *bigger.slot);
    if (bigger.slot == NULL) {
        return false;
    }
    for (size_t i = 0; i < tags->capacity; i++) {
        if (tags->slot[i] != NULL) {
            *find(&bigger, tags->slot[i]) = tags->slot[i];
        }
    }
    free(tags->slot);
    *tags = bigger;
    return true;
}

bool tagsAdd(tagSet *tags, const char *tag) {
    if (tagsHave(tags, tag)) {
        return true;
    }
    if (tags->count * 2 >= tags->capacity && !grow(tags)) {
        return false;
    }
    char *copy = strdup(tag);
    if (copy == NULL) {
        return false;
    }
    *find(tags, tag) = copy;
    tags->count++;
    return true;
}

void tagsFree(tagSet *tags) {
    for (size_t i = 0; i < tags->capacity; i++) {
        free(tags->slot[i]);
    }
    free(tags->slot);
    *tags = (tagSet){0};
}
