// The tool. component.c converts its arguments and its result; the contract is wit/tool.wit.
#include "tool.h"

#include <stdlib.h>
#include <string.h>

static string text(const char *text) { return (string){(uint8_t *)text, strlen(text)}; }

bool greet(string name, string *answer) {
    if (name.len == 0) {
        *answer = text("the name is empty");
        return false;
    }
    string start = text("hello, ");
    uint8_t *all = malloc(start.len + name.len);
    if (!all) abort();
    memcpy(all, start.ptr, start.len);
    memcpy(all + start.len, name.ptr, name.len);
    *answer = (string){all, start.len + name.len};
    return true;
}
