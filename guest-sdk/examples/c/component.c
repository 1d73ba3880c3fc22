// Typed tools in C: the conversion of arguments and results. `wit-bindgen c` generates such a file for any WIT; this one is
// written by hand to show the canonical ABI, which is small:
//
// - A string or list is a pointer and a length, in memory that the caller allocated with `cabi_realloc`.
// - Records are flattened; an option is a case (0 or 1) and a value; an enum is a number.
// - A result of more than one number is a pointer to a structure; a variant in it is a byte for the case, followed by
//   the value.
//
// Each call has its own instance, so nothing is freed.
#include "words.h"

#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define TEXT "example:words/text@0.1.0#"

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t old_size, size_t align, size_t new_size) {
    (void)old_size; // `realloc` aligns for every type.
    return new_size ? must(realloc(old, new_size)) : (void *)align;
}

EXPORT(TEXT "count")
void *export_count(uint8_t *text, size_t len, int32_t has_shortest, int32_t shortest, int32_t letters) {
    static struct {
        uint8_t is_err;
        union {
            counts ok;
            struct {
                uint8_t reason;
                uint32_t characters;
            } err;
        };
    } result;
    count_options options = {has_shortest, (uint16_t)shortest, letters};
    problem found = count((string){text, len}, options, &result.ok);
    result.is_err = found.reason != NONE;
    if (result.is_err) {
        result.err.reason = found.reason;
        result.err.characters = found.characters;
    }
    return &result;
}

EXPORT(TEXT "most-frequent")
void *export_most_frequent(uint8_t *text, size_t len, int32_t limit) {
    static frequencies result;
    result = most_frequent((string){text, len}, (uint8_t)limit);
    return &result;
}

EXPORT(TEXT "checksum")
uint32_t export_checksum(uint8_t *data, size_t len) { return checksum((string){data, len}); }

EXPORT(TEXT "read")
void *export_read(uint8_t *path, size_t len) {
    static struct {
        uint8_t is_err;
        string text;
    } result;
    result.is_err = !read_text((string){path, len}, &result.text);
    return &result;
}
