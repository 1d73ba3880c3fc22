// Typed tools in C: the functions. component.c converts their arguments and results; the contract is ../wit/words.wit.
#include "words.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static bool is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Checks an allocation: running out of memory ends the call.
void *must(void *memory) {
    if (!memory) abort();
    return memory;
}

// Takes the next word off the front of a text; an empty one at the end.
static string next_word(string *rest) {
    while (rest->len && is_space(*rest->ptr)) rest->ptr++, rest->len--;
    string word = {rest->ptr, 0};
    while (rest->len && !is_space(*rest->ptr)) rest->ptr++, rest->len--, word.len++;
    return word;
}

static uint32_t characters(string text) {
    uint32_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += (text.ptr[i] & 0xc0) != 0x80;
    return count;
}

static void lower(string text) {
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z') text.ptr[i] += 'a' - 'A';
}

// Counts each word of a text, in the order of their first appearance.
static frequencies tally(string text, uint32_t shortest) {
    size_t slots = 2;
    while (slots <= text.len) slots *= 2; // More than twice the words: a word and the blank after it take at least two bytes.
    uint32_t *table = must(calloc(slots, sizeof *table));
    frequencies all = {must(calloc(text.len / 2 + 1, sizeof *all.ptr)), 0};
    for (string word; (word = next_word(&text)).len;) {
        if (characters(word) < shortest) continue;
        size_t slot = checksum(word) & (slots - 1);
        for (; table[slot]; slot = (slot + 1) & (slots - 1)) {
            string other = all.ptr[table[slot] - 1].word;
            if (other.len == word.len && !memcmp(other.ptr, word.ptr, word.len)) break;
        }
        if (!table[slot]) {
            all.ptr[all.len++].word = word;
            table[slot] = all.len;
        }
        all.ptr[table[slot] - 1].times++;
    }
    return all;
}

problem count(string text, count_options options, counts *counted) {
    uint32_t length = characters(text);
    if (length > MAX_CHARACTERS) return (problem){TOO_LONG, length};
    if (options.letters == LOWERED) lower(text);
    frequencies all = tally(text, options.has_shortest ? options.shortest : 0);
    *counted = (counts){0, all.len};
    for (size_t i = 0; i < all.len; i++) counted->words += all.ptr[i].times;
    return (problem){all.len ? NONE : NO_WORDS, 0};
}

// Orders the more frequent word first, and words of equal frequency by their place in the text.
static int by_times(const void *a, const void *b) {
    const frequency *x = a, *y = b;
    if (x->times != y->times) return x->times < y->times ? 1 : -1;
    return x->word.ptr < y->word.ptr ? -1 : 1;
}

frequencies most_frequent(string text, uint8_t limit) {
    lower(text);
    frequencies all = tally(text, 0);
    qsort(all.ptr, all.len, sizeof *all.ptr, by_times);
    if (all.len > limit) all.len = limit;
    return all;
}

uint32_t checksum(string data) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < data.len; i++) {
        crc ^= data.ptr[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static bool is_utf8(string text) {
    setlocale(LC_CTYPE, "C.UTF-8");
    mbstate_t state = {0};
    while (text.len) {
        size_t length = mbrtowc(NULL, (char *)text.ptr, text.len, &state);
        if (length > text.len) return false;
        length += !length; // The character NUL has the length 0.
        text.ptr += length, text.len -= length;
    }
    return true;
}

// Sets the error for a path: the path and the reason.
static bool refuse(char *path, const char *reason, string *answer) {
    char *message = must(malloc(strlen(path) + strlen(reason) + 3));
    *answer = (string){(uint8_t *)message, (size_t)sprintf(message, "%s: %s", path, reason)};
    return false;
}

bool read_text(string path, string *answer) {
    char *name = must(strndup((char *)path.ptr, path.len));
    if (strlen(name) < path.len) return refuse(name, "a NUL follows", answer);
    FILE *file = fopen(name, "rb");
    if (!file) return refuse(name, strerror(errno), answer);
    *answer = (string){0};
    for (size_t room = 0, got = 1; got; answer->len += got) {
        if (room - answer->len < 4096) answer->ptr = must(realloc(answer->ptr, room = 2 * room + 8192));
        got = fread(answer->ptr + answer->len, 1, room - answer->len, file);
    }
    if (ferror(file)) return refuse(name, strerror(errno), answer);
    return is_utf8(*answer) || refuse(name, "not UTF-8", answer);
}
