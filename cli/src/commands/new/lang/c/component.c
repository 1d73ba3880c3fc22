// The conversion of arguments and results. `wit-bindgen c` generates such a file for any contract; this one is written by
// hand to show the canonical ABI: a string is a pointer and a length, in memory that the caller allocated with
// `cabi_realloc`; a result of more than one number is a pointer to a structure. Each call has its own instance, so nothing
// is freed.
#include "tool.h"

#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define TOOLS "local:tool/tools@0.1.0#"

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t old_size, size_t align, size_t new_size) {
    (void)old_size; // `realloc` aligns for every type.
    if (!new_size) return (void *)align;
    void *memory = realloc(old, new_size);
    if (!memory) abort();
    return memory;
}

EXPORT(TOOLS "KEBAB")
void *export_greet(uint8_t *name, size_t len) {
    static struct {
        uint8_t is_err;
        string text;
    } result;
    result.is_err = !greet((string){name, len}, &result.text);
    return &result;
}
