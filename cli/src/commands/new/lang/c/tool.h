// Types of wit/tool.wit in C, and the functions of app.c.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// UTF-8 text, in the layout of `string` in the canonical ABI.
typedef struct {
    uint8_t *ptr;
    size_t len;
} string;

// Returns true and the answer, or false and the error.
bool greet(string name, string *answer);
