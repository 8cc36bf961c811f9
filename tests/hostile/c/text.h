/* An input as the text that an environment variable can hold. */
#ifndef TEXT_H
#define TEXT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(CONDITION) \
    do {                 \
        if (!(CONDITION)) abort(); \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* To be freed: of its own size, so that a byte beyond it is noticed. */
static inline char *textOf(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
