/* A table of distinct byte strings: a string's position is its code. */

#ifndef C3PROF_STRINGS_H
#define C3PROF_STRINGS_H

#include <stdlib.h>

#include "json.h"

typedef struct {
    size_t offset, size;
    uint64_t hash;
    int32_t mark; /* what the owner of the table notes about the string */
} Entry;

typedef struct {
    uint8_t *arena;
    size_t used, room;
    Entry *entries;
    int32_t count, entry_room;
    int32_t *slots; /* open addressing; codes + 1, 0 for none */
    uint32_t mask;
    uint64_t seed;
} Strings;

static void strings_free(Strings *table) {
    free(table->arena);
    free(table->entries);
    free(table->slots);
    memset(table, 0, sizeof *table);
}

/* Mixed with a secret seed, so that a file cannot be made to collide. */
static inline uint64_t hash_of(Bytes at, size_t size, uint64_t seed) {
    const uint64_t odd = 0x9E3779B97F4A7C15ull;
    uint64_t hash = seed ^ (size * odd), eight;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&eight, at, 8);
        hash = (hash ^ eight) * odd;
        hash ^= hash >> 29;
    }
    eight = 0;
    memcpy(&eight, at, size);
    hash = (hash ^ eight ^ seed) * odd;
    hash ^= hash >> 32;
    hash *= odd;
    return hash ^ (hash >> 29);
}

/* memcmp() == 0, without a call for what is at most 16 bytes long. */
static inline int same_bytes(Bytes one, Bytes other, size_t size) {
    uint64_t a, b, c, d;
    if (size > 16) return memcmp(one, other, size) == 0;
    if (size >= 8) {
        memcpy(&a, one, 8), memcpy(&b, other, 8);
        memcpy(&c, one + size - 8, 8), memcpy(&d, other + size - 8, 8);
        return a == b && c == d;
    }
    for (size_t i = 0; i < size; i++)
        if (one[i] != other[i]) return 0;
    return 1;
}

static int grown(void **data, size_t wanted, size_t *room, size_t item) {
    if (wanted <= *room) return 1;
    size_t larger = *room < 64 ? 64 : *room + *room / 2;
    if (larger < wanted) larger = wanted;
    if (larger > SIZE_MAX / item) return 0;
    void *moved = realloc(*data, larger * item);
    if (!moved) return 0;
    *data = moved;
    *room = larger;
    return 1;
}

static int slots_grown(Strings *table) {
    if (table->slots && (uint32_t)table->count < table->mask - table->mask / 4) return 1;
    uint64_t larger = table->slots ? ((uint64_t)table->mask + 1) * 2 : 1024;
    if (larger > (1ull << 31)) return 0;
    int32_t *slots = calloc((size_t)larger, sizeof *slots);
    if (!slots) return 0;
    uint32_t mask = (uint32_t)(larger - 1);
    for (int32_t code = 0; code < table->count; code++) {
        uint32_t slot = (uint32_t)table->entries[code].hash & mask;
        while (slots[slot]) slot = (slot + 1) & mask;
        slots[slot] = code + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->mask = mask;
    return 1;
}

/* The code of the string, entered when it is new (then *fresh is 1); -1 without memory. */
static int32_t string_code(Strings *table, Bytes at, size_t size, int *fresh) {
    *fresh = 0;
    if (!slots_grown(table)) return -1;
    uint64_t hash = hash_of(at, size, table->seed);
    uint32_t slot = (uint32_t)hash & table->mask;
    for (; table->slots[slot]; slot = (slot + 1) & table->mask) {
        Entry *entry = &table->entries[table->slots[slot] - 1];
        if (entry->hash == hash && entry->size == size && same_bytes(table->arena + entry->offset, at, size))
            return table->slots[slot] - 1;
    }
    size_t room = (size_t)table->entry_room;
    if (table->count == INT32_MAX - 1 || size > SIZE_MAX / 4 - table->used) return -1;
    if (!grown((void **)&table->entries, (size_t)table->count + 1, &room, sizeof(Entry))) return -1;
    table->entry_room = room > INT32_MAX ? INT32_MAX : (int32_t)room;
    if (!grown((void **)&table->arena, table->used + size + 1, &table->room, 1)) return -1;
    memcpy(table->arena + table->used, at, size);
    table->entries[table->count] = (Entry){table->used, size, hash, 0};
    table->used += size;
    table->slots[slot] = ++table->count;
    *fresh = 1;
    return table->count - 1;
}

/* A buffer that is used again for every string that has to be rewritten. */
typedef struct {
    uint8_t *data;
    size_t room;
} Scratch;

static size_t utf8_written(uint8_t *out, int32_t character) {
    if (character < 0x80) {
        out[0] = (uint8_t)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (uint8_t)(0xC0 | character >> 6);
        out[1] = (uint8_t)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (uint8_t)(0xE0 | character >> 12);
        out[1] = (uint8_t)(0x80 | (character >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (character & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | character >> 18);
    out[1] = (uint8_t)(0x80 | (character >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (character >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (character & 0x3F));
    return 4;
}

/* The characters of a string token that was found valid; its at is NULL without memory. No longer than the token. */
static Token unescaped(Token token, Scratch *scratch) {
    if (token.kind != ESCAPED) return token;
    if (!grown((void **)&scratch->data, token.size + 4, &scratch->room, 1)) return (Token){NULL, 0, STRING};
    uint8_t *out = scratch->data;
    Bytes at = token.at, end = token.at + token.size;
    while (at < end) {
        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        uint8_t letter = at[1];
        if (letter == 'u') {
            int32_t unit = hex4(at + 2, end);
            at += 6;
            if (unit >= 0xD800 && unit < 0xDC00) {
                unit = 0x10000 + ((unit - 0xD800) << 10) + (hex4(at + 2, end) - 0xDC00);
                at += 6;
            }
            out += utf8_written(out, unit);
            continue;
        }
        *out++ = letter == 'b' ? '\b' : letter == 'f' ? '\f' : letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter == 't' ? '\t' : letter;
        at += 2;
    }
    return (Token){scratch->data, (size_t)(out - scratch->data), STRING};
}

/* Valid JSON without the whitespace outside its strings; at is NULL without memory. */
static Token compacted(Bytes at, size_t size, Scratch *scratch) {
    if (!grown((void **)&scratch->data, size + 1, &scratch->room, 1)) return (Token){NULL, 0, CONTAINER};
    uint8_t *out = scratch->data;
    Bytes end = at + size;
    int inside = 0;
    for (; at < end; at++) {
        if (inside && *at == '\\') *out++ = *at++;
        else if (*at == '"') inside = !inside;
        else if (!inside && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) continue;
        *out++ = *at;
    }
    return (Token){scratch->data, (size_t)(out - scratch->data), CONTAINER};
}

#endif
