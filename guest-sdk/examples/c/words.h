// Types of ../wit/words.wit in C, and the functions of words.c.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_CHARACTERS 100000

// UTF-8 text or bytes, in the layout of `string` and `list<u8>` in the canonical ABI.
typedef struct {
    uint8_t *ptr;
    size_t len;
} string;

typedef struct {
    bool has_shortest;
    uint16_t shortest;
    enum { AS_WRITTEN, LOWERED } letters;
} count_options;

typedef struct {
    uint32_t words, distinct;
} counts;

typedef struct {
    enum { NO_WORDS, TOO_LONG, NONE } reason;
    uint32_t characters;
} problem;

typedef struct {
    string word;
    uint32_t times;
} frequency;

typedef struct {
    frequency *ptr;
    size_t len;
} frequencies;

void *must(void *memory);

problem count(string text, count_options options, counts *counted);
frequencies most_frequent(string text, uint8_t limit);
uint32_t checksum(string data);
// Returns true and the text, or false and the error.
bool read_text(string path, string *answer);
