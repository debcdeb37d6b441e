/* Strict JSON: where a value ends and what kind it is. Nothing here writes, allocates or recurses.

   Every function takes [at, end) and returns the position behind what it read, or NULL when that is not strict JSON or
   goes on behind `end`. Strict is what the Python decoder accepts: no raw control bytes, legal escapes, whole surrogate
   pairs, valid UTF-8, numbers by RFC 8259, at most DEEPEST values open at once. */

#ifndef C3PROF_JSON_H
#define C3PROF_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DEEPEST 64

typedef const uint8_t *Bytes;

typedef enum { ABSENT, STRING, ESCAPED, INTEGER, DECIMAL, NOTHING, WORD, CONTAINER } Kind;

/* One value. A STRING is without its quotes; ESCAPED is a string with at least one backslash; NOTHING is null. */
typedef struct {
    Bytes at;
    size_t size;
    Kind kind;
} Token;

static inline Bytes space_end(Bytes at, Bytes end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
    return at;
}

/* Bytes of the UTF-8 sequence at `at`; 0 when it is none. */
static inline size_t utf8_size(Bytes at, Bytes end) {
    uint8_t first = at[0];
    size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!size || (size_t)(end - at) < size) return 0;
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < size; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return size;
}

static inline int hex_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The four hex digits at `at`; -1 when they are none. */
static inline int32_t hex4(Bytes at, Bytes end) {
    if (end - at < 4) return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Behind the escape whose backslash is at `at`. */
static inline Bytes escape_end(Bytes at, Bytes end) {
    if (end - at < 2) return NULL;
    switch (at[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return at + 2;
    case 'u': {
        int32_t unit = hex4(at + 2, end);
        if (unit < 0 || (unit >= 0xDC00 && unit < 0xE000)) return NULL;
        if (unit < 0xD800 || unit > 0xDBFF) return at + 6;
        if (end - at < 12 || at[6] != '\\' || at[7] != 'u') return NULL;
        int32_t low = hex4(at + 8, end);
        return low >= 0xDC00 && low < 0xE000 ? at + 12 : NULL;
    }
    default:
        return NULL;
    }
}

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define STRIDE 16

/* A bit for each of 16 bytes: a quote, a backslash, a control byte or beyond ASCII. */
static inline uint32_t special_bits(Bytes at) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)at);
    __m128i found = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    /* as signed bytes, those beyond ASCII are below 0x20 as well */
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(found, _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20))));
}
#else
#define STRIDE 8
#define EACH(byte) (0x0101010101010101ull * (byte))

/* Not 0 when one of 8 bytes is such a byte. */
static inline uint32_t special_bits(Bytes at) {
    uint64_t eight;
    memcpy(&eight, at, 8);
    uint64_t quote = eight ^ EACH('"'), slash = eight ^ EACH('\\');
    uint64_t found = ((quote - EACH(1)) & ~quote) | ((slash - EACH(1)) & ~slash) | ((eight - EACH(0x20)) & ~eight) | eight;
    return (found & EACH(0x80)) != 0;
}
#endif

/* At the first quote, backslash, control byte or byte beyond ASCII; `end` when there is none. */
static inline Bytes special_at(Bytes at, Bytes end) {
    while (end - at >= STRIDE) {
        uint32_t bits = special_bits(at);
#if STRIDE == 16 && defined(__GNUC__)
        if (bits) return at + __builtin_ctz(bits);
#else
        if (bits) break;
#endif
        at += STRIDE;
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0x80) at++;
    return at;
}

/* Behind the string whose opening quote is at `at`. */
static inline Bytes string_end(Bytes at, Bytes end, Token *token) {
    token->at = ++at;
    token->kind = STRING;
    for (;;) {
        at = special_at(at, end);
        if (at == end || *at < 0x20) return NULL;
        if (*at == '"') {
            token->size = (size_t)(at - token->at);
            return at + 1;
        }
        if (*at == '\\') {
            token->kind = ESCAPED;
            at = escape_end(at, end);
            if (!at) return NULL;
        } else {
            size_t size = utf8_size(at, end);
            if (!size) return NULL;
            at += size;
        }
    }
}

static inline Bytes digits_end(Bytes at, Bytes end) {
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

static inline Bytes number_end(Bytes at, Bytes end, Token *token) {
    token->at = at;
    token->kind = INTEGER;
    if (at < end && *at == '-') at++;
    Bytes whole = at;
    at = digits_end(at, end);
    if (at == whole || (*whole == '0' && at - whole > 1)) return NULL;
    if (at < end && *at == '.') {
        Bytes decimals = ++at;
        token->kind = DECIMAL;
        at = digits_end(at, end);
        if (at == decimals) return NULL;
    }
    if (at < end && (*at | 0x20) == 'e') {
        token->kind = DECIMAL;
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        Bytes exponent = at;
        at = digits_end(at, end);
        if (at == exponent) return NULL;
    }
    token->size = (size_t)(at - token->at);
    return at;
}

static inline Bytes word_end(Bytes at, Bytes end, const char *word, size_t size, Kind kind, Token *token) {
    if ((size_t)(end - at) < size || memcmp(at, word, size) != 0) return NULL;
    *token = (Token){at, size, kind};
    return at + size;
}

/* Behind a value that is neither object nor array. */
static inline Bytes scalar_end(Bytes at, Bytes end, Token *token) {
    if (at == end) return NULL;
    switch (*at) {
    case '"': return string_end(at, end, token);
    case 'n': return word_end(at, end, "null", 4, NOTHING, token);
    case 't': return word_end(at, end, "true", 4, WORD, token);
    case 'f': return word_end(at, end, "false", 5, WORD, token);
    default: return number_end(at, end, token);
    }
}

/* Behind the key at `at` and its colon, at the value. */
static inline Bytes key_end(Bytes at, Bytes end, Token *key) {
    if (at == end || *at != '"' || !(at = string_end(at, end, key))) return NULL;
    at = space_end(at, end);
    if (at == end || *at != ':') return NULL;
    return space_end(at + 1, end);
}

/* Behind the object or array at `at`, inside `depth` open ones. `objects` has a bit for each open one, 1 for an object. */
static Bytes container_end(Bytes at, Bytes end, int depth) {
    uint64_t objects = 0;
    int open = 0;
    Token ignored;
    for (;;) {
        if (at == end) return NULL;
        if (*at == '{' || *at == '[') {
            if (depth + open == DEEPEST) return NULL;
            uint8_t closing = (uint8_t)(*at + 2);
            objects = objects << 1 | (*at == '{');
            open++;
            at = space_end(at + 1, end);
            if (at == end) return NULL;
            if (*at != closing) {
                if ((objects & 1) && !(at = key_end(at, end, &ignored))) return NULL;
                continue;
            }
        } else {
            if (!(at = scalar_end(at, end, &ignored))) return NULL;
            at = space_end(at, end);
        }
        while (at < end && *at == ((objects & 1) ? '}' : ']')) {
            objects >>= 1;
            at++;
            if (--open == 0) return at;
            at = space_end(at, end);
        }
        if (at == end || *at != ',') return NULL;
        at = space_end(at + 1, end);
        if ((objects & 1) && !(at = key_end(at, end, &ignored))) return NULL;
    }
}

/* Behind any value inside `depth` open objects and arrays. */
static inline Bytes value_end(Bytes at, Bytes end, int depth, Token *token) {
    if (at == end) return NULL;
    if (*at != '{' && *at != '[') return scalar_end(at, end, token);
    Bytes behind = container_end(at, end, depth);
    if (behind) *token = (Token){at, (size_t)(behind - at), CONTAINER};
    return behind;
}

#endif
