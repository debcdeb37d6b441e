/* Tables of columns that grow by rows. Names and kinds are those of _columns.TABLES; a test holds them to each other. */

#ifndef C3PROF_COLUMNS_H
#define C3PROF_COLUMNS_H

#include "strings.h"

#define MISSING INT64_MIN
#define NONE (-1)
#define MOST_COLUMNS 16

/* CODE and ROW are int32, ID and LANE int64, REAL float64. */
typedef enum { CODE, ROW, ID, LANE, REAL } ColumnKind;

typedef struct {
    const char *name;
    ColumnKind kind;
} ColumnSpec;

typedef union {
    int64_t whole;
    double real;
} Cell;

typedef struct {
    const char *name;
    const ColumnSpec *specs;
    int columns;
    size_t rows, room;
    void *data[MOST_COLUMNS];
} Table;

enum { EVENTS, OPS, DEVICE, COMM, META, TABLES };

enum { E_TS, E_DUR, E_PH, E_CAT, E_NAME, E_PID, E_TID, E_EXTERNAL, E_CORRELATION, E_COLUMNS };
static const ColumnSpec EVENT_COLUMNS[] = {
    {"ts_ns", LANE}, {"dur_ns", LANE}, {"ph", CODE}, {"cat", CODE}, {"name", CODE}, {"pid", CODE}, {"tid", CODE},
    {"external_id", ID}, {"correlation", ID},
};
enum { O_ROW, O_DIMS, O_TYPES, O_STRIDES, O_CONCRETE, O_MODULE, O_COLUMNS };
static const ColumnSpec OP_COLUMNS[] = {
    {"row", ROW}, {"dims", CODE}, {"types", CODE}, {"strides", CODE}, {"concrete", CODE}, {"module", CODE},
};
/* From D_FIRST and C_FIRST on in the order of the keys in events.h. */
enum { D_ROW, D_DEVICE_TEXT, D_STREAM_TEXT, D_FIRST, D_DEVICE = D_FIRST, D_STREAM, D_COLUMNS = D_FIRST + 11 };
static const ColumnSpec DEVICE_COLUMNS[] = {
    {"row", ROW}, {"device_text", CODE}, {"stream_text", CODE}, {"device", LANE}, {"stream", LANE}, {"grid", CODE}, {"block", CODE},
    {"shared_memory", ID}, {"registers", ID}, {"occupancy", REAL}, {"bytes", ID}, {"graph", ID}, {"graph_node", ID}, {"copy_kind", CODE},
};
enum { C_ROW, C_FIRST, C_COLUMNS = C_FIRST + 14 };
static const ColumnSpec COMM_COLUMNS[] = {
    {"row", ROW}, {"collective", CODE}, {"dtype", CODE}, {"group", CODE}, {"group_desc", CODE}, {"group_ranks", CODE},
    {"in_split", CODE}, {"out_split", CODE}, {"in_elements", ID}, {"out_elements", ID}, {"group_size", ID}, {"seq", ID}, {"rank", ID},
    {"src_rank", ID}, {"dst_rank", ID},
};
enum { M_ROW, M_ARGS, M_COLUMNS };
static const ColumnSpec META_COLUMNS[] = {{"row", ROW}, {"args", CODE}};

static void tables_init(Table *tables) {
    tables[EVENTS] = (Table){.name = "events", .specs = EVENT_COLUMNS, .columns = E_COLUMNS};
    tables[OPS] = (Table){.name = "ops", .specs = OP_COLUMNS, .columns = O_COLUMNS};
    tables[DEVICE] = (Table){.name = "device", .specs = DEVICE_COLUMNS, .columns = D_COLUMNS};
    tables[COMM] = (Table){.name = "comm", .specs = COMM_COLUMNS, .columns = C_COLUMNS};
    tables[META] = (Table){.name = "meta", .specs = META_COLUMNS, .columns = M_COLUMNS};
}

static size_t cell_size(ColumnKind kind) { return kind == CODE || kind == ROW ? 4 : 8; }

static void table_clear(Table *table) {
    for (int column = 0; column < table->columns; column++) {
        free(table->data[column]);
        table->data[column] = NULL;
    }
    table->rows = table->room = 0;
}

/* Whether a cell holds something. */
static int has_value(ColumnKind kind, Cell cell) {
    if (kind == REAL) return cell.real == cell.real;
    return cell.whole != (kind == LANE ? MISSING : NONE);
}

/* One more row in all columns; 0 without memory. */
static int row_added(Table *table, const Cell *row) {
    if (table->rows == table->room) {
        size_t larger = table->room ? table->room * 2 : 1024;
        if (larger > (size_t)1 << 31) return 0;
        for (int column = 0; column < table->columns; column++) {
            void *moved = realloc(table->data[column], larger * cell_size(table->specs[column].kind));
            if (!moved) return 0;
            table->data[column] = moved;
        }
        table->room = larger;
    }
    for (int column = 0; column < table->columns; column++) {
        ColumnKind kind = table->specs[column].kind;
        if (cell_size(kind) == 4) ((int32_t *)table->data[column])[table->rows] = (int32_t)row[column].whole;
        else if (kind == REAL) ((double *)table->data[column])[table->rows] = row[column].real;
        else ((int64_t *)table->data[column])[table->rows] = row[column].whole;
    }
    table->rows++;
    return 1;
}

#endif
