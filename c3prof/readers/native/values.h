/* What the value of a token means as a number: the plain cases of _values.py, digit by digit.

   Each returns 0 for a case that is left to Python (float syntax, exponents, more digits than fit): the event is then
   read there. */

#ifndef C3PROF_VALUES_H
#define C3PROF_VALUES_H

#include "columns.h"

#define LONGEST_ID 40

/* The number token that a token is or, as a string without escapes, holds; ABSENT when it is none. */
static Token number_in(Token token) {
    Token number = {NULL, 0, ABSENT};
    if (token.kind == INTEGER || token.kind == DECIMAL) return token;
    if (token.kind != STRING) return number;
    if (number_end(token.at, token.at + token.size, &number) != token.at + token.size) number.kind = ABSENT;
    return number;
}

/* An integer modulo 2**64; digits only, after an optional minus. */
static int64_t wrapped(Bytes at, size_t size) {
    uint64_t value = 0;
    int negative = size && *at == '-';
    for (size_t i = (size_t)negative; i < size; i++) value = value * 10 + (uint64_t)(at[i] - '0');
    if (negative) value = 0 - value;
    return value <= INT64_MAX ? (int64_t)value : (int64_t)(value - 1 - INT64_MAX) + INT64_MIN;
}

static int id_of(Token token, int64_t *id) {
    Token number = number_in(token);
    *id = NONE;
    if (token.kind == ESCAPED || number.kind == DECIMAL) return 0;
    if (number.kind == INTEGER && number.size <= LONGEST_ID) *id = wrapped(number.at, number.size);
    return 1;
}

static int starts_with(Token text, const char *word, size_t size) {
    if (text.size < size) return 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = text.at[i];
        if (byte >= 'A' && byte <= 'Z') byte |= 0x20;
        if (byte != (uint8_t)word[i]) return 0;
    }
    return 1;
}

/* 7, "7", "stream 7", "GPU 7", "0x10" as a number: 1; other text: -1; left to Python: 0. `text` is unescaped. */
static int lane_of(Token text, int64_t *lane) {
    static const struct { const char *word; size_t size; } NAMES[] = {{"stream", 6}, {"device", 6}, {"gpu", 3}};
    Bytes end = text.at + text.size;
    if (text.size > 2 && text.size <= 2 + LONGEST_ID && text.at[0] == '0' && (text.at[1] | 0x20) == 'x') {
        uint64_t value = 0;
        Bytes at = text.at + 2;
        for (; at < end && hex_digit(*at) >= 0; at++) value = value << 4 | (uint64_t)hex_digit(*at);
        if (at < end) return -1;
        *lane = value <= INT64_MAX ? (int64_t)value : (int64_t)(value - 1 - INT64_MAX) + INT64_MIN;
        return 1;
    }
    Token number = number_in((Token){text.at, text.size, STRING});
    if (number.kind == INTEGER && number.size <= LONGEST_ID) {
        *lane = wrapped(number.at, number.size);
        return 1;
    }
    if (number.kind != ABSENT) return 0;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (!starts_with(text, NAMES[i].word, NAMES[i].size)) continue;
        Bytes digits = text.at + NAMES[i].size;
        if (digits < end && *digits == ' ') digits++;
        if (digits == end || end - digits > LONGEST_ID || digits_end(digits, end) != end) return -1;
        *lane = wrapped(digits, (size_t)(end - digits));
        return 1;
    }
    return -1;
}

/* Exact when mantissa and power of ten are exact doubles. */
static int real_of(Token token, double *real) {
    static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    *real = NAN;
    if (token.kind == ESCAPED) return 0;
    Token number = number_in(token);
    if (number.kind == ABSENT) return 1;
    if (number.size > 16) return 0;
    Bytes at = number.at, end = number.at + number.size;
    int negative = *at == '-', decimals = -1;
    int64_t mantissa = 0;
    for (at += negative; at < end; at++) {
        if ((*at | 0x20) == 'e') return 0;
        if (*at == '.') decimals = 0;
        else {
            mantissa = mantissa * 10 + (*at - '0');
            decimals += decimals >= 0;
        }
    }
    if (mantissa > 1000000000000000) return 0;
    *real = (double)mantissa / POWERS[decimals > 0 ? decimals : 0];
    if (negative) *real = -*real;
    return 1;
}

/* µs as ns, rounded half to even. */
static int time_of(Token token, int64_t *ns) {
    *ns = MISSING;
    if (token.kind == ESCAPED) return 0;
    Token number = number_in(token);
    if (number.kind == ABSENT) return 1;
    Bytes at = number.at, end = number.at + number.size;
    int negative = *at == '-';
    Bytes whole = at += negative;
    uint64_t value = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        if (at - whole == 16) return 0;
        value = value * 10 + (uint64_t)(*at - '0');
    }
    int places = 0, half = 0, more = 0; /* half: the fourth decimal against 5; more: anything behind it */
    if (at < end && *at == '.') {
        for (at++; at < end && *at >= '0' && *at <= '9'; at++, places++) {
            if (places < 3) value = value * 10 + (uint64_t)(*at - '0');
            else if (places == 3) half = *at - '5' + 1;
            else more |= *at != '0';
            if (places == 40) return 0;
        }
    }
    if (at < end) return 0;
    for (; places < 3; places++) value *= 10;
    if (half > 1 || (half == 1 && (more || (value & 1)))) value++;
    if (value > INT64_MAX) return 0;
    *ns = negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

#endif
