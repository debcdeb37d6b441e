/* Events of a JSON array as rows of the tables: the same as _events.py for every event that is strict and plain.

   An event that is neither is left alone, and so is everything behind it: Python reads that one and calls again. */

#ifndef C3PROF_EVENTS_H
#define C3PROF_EVENTS_H

#include <math.h>

#include "values.h"

enum { F_PH, F_CAT, F_NAME, F_PID, F_TID, F_TS, F_DUR, F_ARGS, FIELDS };
static const char *const FIELD_KEYS[FIELDS] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};

enum {
    A_EXTERNAL, A_EXTERNAL_OLD, A_CORRELATION, A_DIMS, A_DIMS_OLD, A_TYPES, A_STRIDES, A_CONCRETE, A_MODULE,
    A_DEVICE, A_COMM = A_DEVICE + D_COLUMNS - D_FIRST, ARGS = A_COMM + C_COLUMNS - C_FIRST
};
static const char *const ARG_KEYS[ARGS] = {
    "External id", "external id", "correlation", "Input Dims", "Input dims", "Input type", "Input Strides", "Concrete Inputs",
    "Module Hierarchy",
    "device", "stream", "grid", "block", "shared memory", "registers per thread", "est. achieved occupancy %", "bytes", "graph id",
    "graph node id", "kind",
    "Collective name", "dtype", "Process Group Name", "Process Group Description", "Process Group Ranks", "In split size",
    "Out split size", "In msg nelems", "Out msg nelems", "Group size", "Seq", "Rank", "Src Rank", "Dst Rank",
};

#define KEY_SLOTS 128

/* Keys by a small hash; slots hold positions + 1. */
typedef struct {
    const char *const *keys;
    uint8_t slots[KEY_SLOTS], sizes[ARGS];
} Keys;

static uint32_t key_slot(Bytes at, size_t size) {
    return size ? (uint32_t)(at[0] * 7u + at[size - 1] * 31u + size * 13u) % KEY_SLOTS : 0;
}

static void keys_init(Keys *table, const char *const *keys, int count) {
    memset(table, 0, sizeof *table);
    table->keys = keys;
    for (int i = 0; i < count; i++) {
        uint32_t slot = key_slot((Bytes)keys[i], strlen(keys[i]));
        while (table->slots[slot]) slot = (slot + 1) % KEY_SLOTS;
        table->slots[slot] = (uint8_t)(i + 1);
        table->sizes[i] = (uint8_t)strlen(keys[i]);
    }
}

static int key_position(const Keys *table, Token key) {
    for (uint32_t slot = key_slot(key.at, key.size); table->slots[slot]; slot = (slot + 1) % KEY_SLOTS) {
        int position = table->slots[slot] - 1;
        if (table->sizes[position] == key.size && same_bytes((Bytes)table->keys[position], key.at, key.size)) return position;
    }
    return -1;
}

/* Writers repeat themselves: what stood before the n-th value of an event mostly stands before that of the next one as
   well. Where the bytes are the same they mean the same, and need not be taken apart again. */
#define GAPS 24 /* members whose gaps are remembered, and one that the others share */
#define LAYOUTS 16
#define CLOSED (-2)

typedef struct {
    uint8_t bytes[62], size; /* size 0: nothing is remembered */
    int8_t position;         /* of the key, as gap_end tells it */
} Gap;

/* Whether the same bytes stand at `at`, and no whitespace follows that would belong to them. */
static inline int gap_fits(const Gap *gap, Bytes at, Bytes end) {
    size_t size = gap->size;
    if (!size || (size_t)(end - at) <= sizeof gap->bytes || (at[size] <= ' ' && gap->position != CLOSED)) return 0;
    uint64_t one, other, different = 0;
    if (size < 8) return same_bytes(gap->bytes, at, size);
    for (size_t i = 0; i + 8 < size; i += 8) {
        memcpy(&one, gap->bytes + i, 8), memcpy(&other, at + i, 8);
        different |= one ^ other;
    }
    memcpy(&one, gap->bytes + size - 8, 8), memcpy(&other, at + size - 8, 8);
    return !(different | (one ^ other));
}

static void gap_learned(Gap *gap, Bytes at, size_t size, int position) {
    gap->size = size <= sizeof gap->bytes ? (uint8_t)size : 0;
    gap->position = (int8_t)position;
    memcpy(gap->bytes, at, gap->size);
}

/* Marks of strings. */
enum { SPAN = 1, SAMPLE = 2, ON_DEVICE = 4, PYTHON = 8, MODULE = 16, SHOWS_CONCRETE = 32 };

typedef struct {
    Strings strings, raw; /* raw: JSON values as written; an entry's mark is the code in strings */
    Scratch scratch;
    Keys field_keys, arg_keys;
    Gap field_gaps[LAYOUTS][GAPS + 1], arg_gaps[LAYOUTS][GAPS + 1]; /* by phase, and by category */
    Table tables[TABLES];
    int64_t *phases; /* events by code of ph */
    size_t phase_room;
    int32_t last[FIELDS]; /* code + 1 of the last text of a field; neighbours often have the same */
    int64_t events, without_phase, python_functions;
    int failed; /* out of memory */
} Scanner;

typedef struct {
    Token fields[FIELDS], args[ARGS]; /* args only where they are seen */
    uint64_t seen;                    /* a bit for each of args that has a value */
} Event;

#define BIT(arg) (1ull << (arg))
#define BITS(from, to) (BIT(to) - BIT(from)) /* of the args [from, to) */

static const Token NO_VALUE = {NULL, 0, ABSENT};

static Token arg(const Event *event, int position) { return event->seen & BIT(position) ? event->args[position] : NO_VALUE; }

static int is_text(Token text, const char *word) { return strlen(word) == text.size && memcmp(text.at, word, text.size) == 0; }

static int begins(Token text, const char *word) { return strlen(word) <= text.size && memcmp(text.at, word, strlen(word)) == 0; }

static int32_t mark_of(Token text) {
    static const char *const DEVICES[] = {"kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset", "gpu_user_annotation", "cuda_sync"};
    static const char *const CONCRETE[] = {"c10d::", "_c10d_functional::", "record_param_comms", "nccl:", "gloo:"};
    int32_t mark = 0;
    if (is_text(text, "X")) mark |= SPAN;
    if (is_text(text, "C") || is_text(text, "M")) mark |= SAMPLE;
    if (is_text(text, "python_function")) mark |= PYTHON;
    if (begins(text, "nn.Module: ")) mark |= MODULE;
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++)
        if (strlen(DEVICES[i]) == text.size && starts_with(text, DEVICES[i], text.size)) mark |= ON_DEVICE;
    for (size_t i = 0; i < sizeof CONCRETE / sizeof *CONCRETE; i++)
        if (begins(text, CONCRETE[i])) mark |= SHOWS_CONCRETE;
    return mark;
}

static int32_t code_of(Scanner *scanner, Token text) {
    int fresh;
    int32_t code = text.at ? string_code(&scanner->strings, text.at, text.size, &fresh) : -1;
    if (code < 0) scanner->failed = 1;
    else if (fresh) scanner->strings.entries[code].mark = mark_of(text);
    return code;
}

static int32_t json_code(Scanner *scanner, Token token) {
    if (token.kind == ABSENT || token.kind == NOTHING) return NONE;
    if (token.kind == STRING || token.kind == ESCAPED) token = (Token){token.at - 1, token.size + 2, token.kind};
    int fresh;
    int32_t raw = string_code(&scanner->raw, token.at, token.size, &fresh);
    if (raw < 0) {
        scanner->failed = 1;
        return NONE;
    }
    if (fresh) {
        int32_t code = code_of(scanner, compacted(token.at, token.size, &scanner->scratch));
        scanner->raw.entries[raw].mark = code;
    }
    return scanner->raw.entries[raw].mark;
}

static int32_t text_code(Scanner *scanner, Token token) {
    if (token.kind == ABSENT || token.kind == NOTHING) return NONE;
    if (token.kind == CONTAINER) return json_code(scanner, token);
    return code_of(scanner, unescaped(token, &scanner->scratch));
}

/* The code of a field's text. */
static int32_t field_code(Scanner *scanner, const Token *fields, int field) {
    Token token = fields[field];
    int32_t last = scanner->last[field] - 1;
    if (last >= 0 && (token.kind == STRING || token.kind == INTEGER)) {
        const Entry *entry = &scanner->strings.entries[last];
        if (entry->size == token.size && same_bytes(scanner->strings.arena + entry->offset, token.at, token.size)) return last;
    }
    int32_t code = text_code(scanner, token);
    scanner->last[field] = code + 1;
    return code;
}

static int32_t mark(const Scanner *scanner, int32_t code) { return code < 0 ? 0 : scanner->strings.entries[code].mark; }

/* A device or stream and, when it is other text, its code; 0 when it is left to Python. */
static int lane_cells(Scanner *scanner, Token token, Cell *lane, Cell *text) {
    lane->whole = MISSING;
    text->whole = NONE;
    if (token.kind == ABSENT || token.kind == NOTHING) return 1;
    if (token.kind == DECIMAL) return 0;
    if (token.kind == STRING || token.kind == ESCAPED || token.kind == INTEGER) {
        Token plain = unescaped(token, &scanner->scratch);
        if (!plain.at) {
            scanner->failed = 1;
            return 0;
        }
        int found = lane_of(plain, &lane->whole);
        if (found >= 0) return found;
    }
    text->whole = text_code(scanner, token);
    return 1;
}

static int cell_of(Scanner *scanner, ColumnKind kind, Token token, int as_json, Cell *cell) {
    switch (kind) {
    case CODE: cell->whole = as_json ? json_code(scanner, token) : text_code(scanner, token); return 1;
    case ID: return id_of(token, &cell->whole);
    case REAL: return real_of(token, &cell->real);
    default: return 0;
    }
}

/* The code of a process or thread; 7 and "7" are the same. */
static int pid_cell(Scanner *scanner, const Token *fields, int field, Cell *cell) {
    Token token = fields[field];
    if (token.kind == DECIMAL || (token.kind == INTEGER && token.size == 2 && memcmp(token.at, "-0", 2) == 0)) return 0;
    cell->whole = field_code(scanner, fields, field);
    return 1;
}

/* Behind what stands between two values of an object, or between its brace and a value: comma, key, colon and whitespace.
   `first`: the brace comes before. *position: of the key, -1 for another key, CLOSED behind the closing brace. */
static Bytes gap_end(Gap *gap, Bytes at, Bytes end, const Keys *keys, int first, int *position) {
    if (gap_fits(gap, at, end)) {
        *position = gap->position;
        return at + gap->size;
    }
    Bytes begin = at;
    at = space_end(at, end);
    if (at == end) return NULL;
    if (*at == '}') {
        *position = CLOSED;
        at++;
    } else {
        Token key;
        if (!first && *at != ',') return NULL;
        if (!first) at = space_end(at + 1, end);
        if (!(at = key_end(at, end, &key)) || key.kind == ESCAPED) return NULL;
        *position = key_position(keys, key);
    }
    gap_learned(gap, begin, (size_t)(at - begin), *position);
    return at;
}

/* What an event looks like depends on its phase, and its args on its category; both nearly always stand first. */
static uint32_t layout(Token text) {
    return text.kind == STRING && text.size ? (text.at[0] * 5u + text.at[text.size - 1] + (uint32_t)text.size * 3u) % LAYOUTS : 0;
}

/* Members of the args object at `at`. */
static Bytes args_end(Scanner *scanner, Bytes at, Bytes end, Event *event) {
    event->seen = 0;
    Bytes object = at++;
    Gap *gaps = scanner->arg_gaps[layout(event->fields[F_CAT])];
    for (int member = 0;; member++) {
        int position;
        Token value;
        if (!(at = gap_end(&gaps[member < GAPS ? member : GAPS], at, end, &scanner->arg_keys, !member, &position))) return NULL;
        if (position == CLOSED) break;
        if (!(at = value_end(at, end, 2, &value))) return NULL;
        if (position >= 0) {
            event->args[position] = value;
            event->seen = (event->seen & ~BIT(position)) | (value.kind == NOTHING ? 0 : BIT(position));
        }
    }
    event->fields[F_ARGS] = (Token){object, (size_t)(at - object), CONTAINER};
    return at;
}

/* Behind the event at `at`; NULL when it is not strict, not plain or not whole. */
static Bytes event_end(Scanner *scanner, Bytes at, Bytes end, Event *event) {
    for (int i = 0; i < FIELDS; i++) event->fields[i].kind = ABSENT;
    event->seen = 0;
    at++;
    Gap *gaps = scanner->field_gaps[0];
    for (int member = 0;; member++) {
        int position;
        Token value;
        if (!(at = gap_end(&gaps[member < GAPS ? member : GAPS], at, end, &scanner->field_keys, !member, &position))) return NULL;
        if (position == CLOSED) return at;
        if (at == end) return NULL;
        if (position == F_ARGS && *at == '{') {
            if (!(at = args_end(scanner, at, end, event))) return NULL;
        } else {
            if (!(at = value_end(at, end, 1, &value))) return NULL;
            if (position == F_ARGS && value.kind != NOTHING) return NULL;
            if (position == F_ARGS) event->seen = 0;
            if (position >= 0) event->fields[position] = value;
            if (position == F_PH) gaps = scanner->field_gaps[layout(value)];
        }
    }
}

/* A row of a table whose columns from `first` on are the args from `from` on; 1 with values, -1 without, 0 left to Python. */
static int cells_of(Scanner *scanner, const Event *event, const ColumnSpec *specs, int first, int columns, int from, Cell *row) {
    int filled = -1;
    if (!(event->seen & BITS(from, from + columns - first))) return -1;
    for (int column = first; column < columns; column++) {
        Token token = arg(event, from + column - first);
        if (specs[column].kind == LANE) {
            if (!lane_cells(scanner, token, &row[column], &row[D_DEVICE_TEXT + column - D_DEVICE])) return 0;
            if (row[D_DEVICE_TEXT + column - D_DEVICE].whole != NONE) filled = 1;
        } else {
            int as_json = specs == DEVICE_COLUMNS && column < D_COLUMNS - 1;
            if (!cell_of(scanner, specs[column].kind, token, as_json, &row[column])) return 0;
        }
        if (has_value(specs[column].kind, row[column])) filled = 1;
    }
    return filled;
}

static int device_cells(Scanner *scanner, const Event *event, Cell *row) {
    int filled = cells_of(scanner, event, DEVICE_COLUMNS, D_FIRST, D_COLUMNS, A_DEVICE, row);
    for (int lane = 0; filled > 0 && lane < 2; lane++) {
        Cell *number = &row[D_DEVICE + lane], *text = &row[D_DEVICE_TEXT + lane];
        if (number->whole == MISSING && text->whole == NONE)
            if (!lane_cells(scanner, event->fields[lane ? F_TID : F_PID], number, text)) return 0;
    }
    return filled;
}

static int op_cells(Scanner *scanner, const Event *event, int shows_concrete, Cell *row) {
    if (!(event->seen & BITS(A_DIMS, A_DEVICE))) return -1;
    row[O_DIMS].whole = json_code(scanner, arg(event, event->seen & BIT(A_DIMS) ? A_DIMS : A_DIMS_OLD));
    row[O_TYPES].whole = json_code(scanner, arg(event, A_TYPES));
    row[O_STRIDES].whole = json_code(scanner, arg(event, A_STRIDES));
    row[O_CONCRETE].whole = shows_concrete ? json_code(scanner, arg(event, A_CONCRETE)) : NONE;
    Token module = arg(event, A_MODULE);
    row[O_MODULE].whole = module.kind == STRING && !module.size ? NONE : text_code(scanner, module);
    for (int column = O_DIMS; column < O_COLUMNS; column++)
        if (row[column].whole != NONE) return 1;
    return -1;
}

static int event_cells(Scanner *scanner, const Event *event, Cell *row) {
    const Token *fields = event->fields;
    int64_t old;
    if (!pid_cell(scanner, fields, F_PID, &row[E_PID]) || !pid_cell(scanner, fields, F_TID, &row[E_TID])) return 0;
    if (!id_of(arg(event, A_EXTERNAL), &row[E_EXTERNAL].whole) || !id_of(arg(event, A_EXTERNAL_OLD), &old)) return 0;
    if (row[E_EXTERNAL].whole == NONE) row[E_EXTERNAL].whole = old;
    row[E_NAME].whole = field_code(scanner, fields, F_NAME);
    return id_of(arg(event, A_CORRELATION), &row[E_CORRELATION].whole);
}

/* An event that becomes a row, and its rows in the other tables. 0: left to Python; then no table has changed. */
static int kept(Scanner *scanner, const Event *event, Cell *row) {
    Cell device[MOST_COLUMNS], comm[MOST_COLUMNS], op[MOST_COLUMNS], meta[M_COLUMNS];
    if (!event_cells(scanner, event, row)) return 0;
    int on_device = -1, in_comm = -1, in_ops = -1, in_meta = -1;
    if (event->fields[F_ARGS].kind == CONTAINER) {
        in_comm = cells_of(scanner, event, COMM_COLUMNS, C_FIRST, C_COLUMNS, A_COMM, comm);
        in_ops = op_cells(scanner, event, mark(scanner, (int32_t)row[E_NAME].whole) & SHOWS_CONCRETE, op);
        if (mark(scanner, (int32_t)row[E_CAT].whole) & ON_DEVICE) on_device = device_cells(scanner, event, device);
        if (mark(scanner, (int32_t)row[E_PH].whole) & SAMPLE) {
            meta[M_ARGS].whole = json_code(scanner, event->fields[F_ARGS]);
            in_meta = 1;
        }
    }
    if (!on_device || !in_comm || scanner->failed) return 0;
    Table *tables = scanner->tables;
    Cell position = {.whole = (int64_t)tables[EVENTS].rows};
    device[D_ROW] = comm[C_ROW] = op[O_ROW] = meta[M_ROW] = position;
    int added = row_added(&tables[EVENTS], row);
    if (added && on_device > 0) added = row_added(&tables[DEVICE], device);
    if (added && in_comm > 0) added = row_added(&tables[COMM], comm);
    if (added && in_ops > 0) added = row_added(&tables[OPS], op);
    if (added && in_meta > 0) added = row_added(&tables[META], meta);
    scanner->failed |= !added;
    return added;
}

static int counted(Scanner *scanner, int32_t phase, int python) {
    if (phase >= 0) {
        size_t before = scanner->phase_room;
        if (!grown((void **)&scanner->phases, (size_t)phase + 1, &scanner->phase_room, sizeof *scanner->phases)) {
            scanner->failed = 1;
            return 0;
        }
        memset(scanner->phases + before, 0, (scanner->phase_room - before) * sizeof *scanner->phases);
        scanner->phases[phase]++;
    } else scanner->without_phase++;
    scanner->events++;
    scanner->python_functions += python;
    return 1;
}

/* The event entered in the tables and the counts; 0 when it is left to Python. */
static int entered(Scanner *scanner, const Event *event) {
    const Token *fields = event->fields;
    Cell row[MOST_COLUMNS];
    int32_t phase = field_code(scanner, fields, F_PH), category = field_code(scanner, fields, F_CAT);
    if (scanner->failed) return 0;
    row[E_PH].whole = phase;
    row[E_CAT].whole = category;
    int python = (mark(scanner, category) & PYTHON) != 0;
    int wanted = phase < 0 || mark(scanner, phase) & (SPAN | SAMPLE);
    if (wanted && python) {
        Token name = unescaped(fields[F_NAME], &scanner->scratch);
        wanted = fields[F_NAME].kind != ABSENT && name.at && begins(name, "nn.Module: ");
    }
    if (wanted) {
        if (!time_of(fields[F_TS], &row[E_TS].whole) || !time_of(fields[F_DUR], &row[E_DUR].whole)) return 0;
        if (phase < 0) wanted = row[E_TS].whole != MISSING && row[E_DUR].whole != MISSING;
    }
    if (wanted && !kept(scanner, event, row)) return 0;
    return counted(scanner, phase, python);
}

/* Behind the last of the events that start at `at` and could be entered; `at` when not even one could. */
static Bytes events_end(Scanner *scanner, Bytes at, Bytes end) {
    Event event;
    Bytes done = at;
    while (at < end && *at == '{') {
        at = event_end(scanner, at, end, &event);
        if (!at || !entered(scanner, &event)) break;
        done = at;
        at = space_end(at, end);
        if (at == end || *at != ',') break;
        at = space_end(at + 1, end);
    }
    return done;
}

#endif
