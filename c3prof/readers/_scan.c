/* The native way of the scan: events of a buffer as columns, without the GIL. See _native.py for its use.

   Python's limited API of 3.10 and nothing else: one build serves every later version. */

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native/events.h"

#define NAME "c3prof.readers._scan.Scanner"
#define COLUMN "c3prof.readers._scan.column"

typedef struct {
    Scanner scanner;
    int busy; /* a thread is in consume without the GIL */
} Handle;

static void handle_free(PyObject *capsule) {
    Handle *handle = PyCapsule_GetPointer(capsule, NAME);
    if (!handle) return;
    for (int table = 0; table < TABLES; table++) table_clear(&handle->scanner.tables[table]);
    strings_free(&handle->scanner.strings);
    strings_free(&handle->scanner.raw);
    free(handle->scanner.scratch.data);
    free(handle->scanner.phases);
    free(handle);
}

static PyObject *scanner_new(PyObject *module, PyObject *args) {
    unsigned long long seed;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &seed)) return NULL;
    Handle *handle = calloc(1, sizeof *handle);
    if (!handle) return PyErr_NoMemory();
    Scanner *scanner = &handle->scanner;
    scanner->strings.seed = scanner->raw.seed = seed;
    keys_init(&scanner->field_keys, FIELD_KEYS, FIELDS);
    keys_init(&scanner->arg_keys, ARG_KEYS, ARGS);
    tables_init(scanner->tables);
    PyObject *capsule = PyCapsule_New(handle, NAME, handle_free);
    if (!capsule) free(handle);
    return capsule;
}

/* The scanner of a capsule that no other thread is using; NULL with an exception set otherwise. */
static Handle *idle(PyObject *capsule) {
    Handle *handle = PyCapsule_GetPointer(capsule, NAME);
    if (handle && handle->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the scanner is in use by another thread");
        return NULL;
    }
    return handle;
}

static PyObject *consume(PyObject *module, PyObject *args) {
    PyObject *capsule, *buffer;
    Py_ssize_t start, size;
    char *data;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!n", &capsule, &PyBytes_Type, &buffer, &start)) return NULL;
    Handle *handle = idle(capsule);
    if (!handle || PyBytes_AsStringAndSize(buffer, &data, &size) < 0) return NULL;
    if (start < 0 || start > size) return PyErr_Format(PyExc_ValueError, "start %zd is outside of %zd bytes", start, size);
    Bytes bytes = (Bytes)data, behind;
    Py_INCREF(buffer);
    handle->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    behind = events_end(&handle->scanner, bytes + start, bytes + size);
    Py_END_ALLOW_THREADS
    handle->busy = 0;
    Py_DECREF(buffer);
    if (handle->scanner.failed) return PyErr_NoMemory();
    return PyLong_FromSsize_t(behind - bytes);
}

static void column_given_free(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, COLUMN)); }

/* (address, rows, owner) of a column, which the table gives away; its memory lives as long as the owner. */
static PyObject *column_given(Table *table, int column) {
    void *data = table->data[column];
    if (!table->rows) return Py_BuildValue("(iiO)", 0, 0, Py_None);
    void *fitted = realloc(data, table->rows * cell_size(table->specs[column].kind));
    if (fitted) table->data[column] = data = fitted;
    PyObject *owner = PyCapsule_New(data, COLUMN, column_given_free);
    if (!owner) return NULL;
    table->data[column] = NULL;
    return Py_BuildValue("(NnN)", PyLong_FromVoidPtr(data), (Py_ssize_t)table->rows, owner);
}

static PyObject *columns_given(Table *table) {
    PyObject *columns = PyDict_New();
    for (int column = 0; columns && column < table->columns; column++) {
        PyObject *given = column_given(table, column);
        if (!given || PyDict_SetItemString(columns, table->specs[column].name, given) < 0) Py_CLEAR(columns);
        Py_XDECREF(given);
    }
    table_clear(table);
    return columns;
}

static PyObject *take(PyObject *module, PyObject *capsule) {
    Handle *handle = idle(capsule);
    (void)module;
    if (!handle) return NULL;
    PyObject *tables = PyDict_New();
    for (int i = 0; tables && i < TABLES; i++) {
        PyObject *columns = columns_given(&handle->scanner.tables[i]);
        if (!columns || PyDict_SetItemString(tables, handle->scanner.tables[i].name, columns) < 0) Py_CLEAR(tables);
        Py_XDECREF(columns);
    }
    return tables;
}

static PyObject *rows(PyObject *module, PyObject *capsule) {
    Handle *handle = idle(capsule);
    (void)module;
    return handle ? PyLong_FromSize_t(handle->scanner.tables[EVENTS].rows) : NULL;
}

static PyObject *strings(PyObject *module, PyObject *capsule) {
    Handle *handle = idle(capsule);
    (void)module;
    if (!handle) return NULL;
    Strings *table = &handle->scanner.strings;
    PyObject *list = PyList_New(table->count);
    for (int32_t code = 0; list && code < table->count; code++) {
        Entry entry = table->entries[code];
        PyObject *text = PyUnicode_DecodeUTF8((const char *)table->arena + entry.offset, (Py_ssize_t)entry.size, "replace");
        if (!text || PyList_SetItem(list, code, text) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *counts(PyObject *module, PyObject *capsule) {
    Handle *handle = idle(capsule);
    (void)module;
    if (!handle) return NULL;
    Scanner *scanner = &handle->scanner;
    size_t known = scanner->phase_room < (size_t)scanner->strings.count ? scanner->phase_room : (size_t)scanner->strings.count;
    PyObject *phases = PyDict_New();
    for (size_t code = 0; phases && code < known; code++) {
        if (!scanner->phases[code]) continue;
        PyObject *key = PyLong_FromSize_t(code), *count = PyLong_FromLongLong(scanner->phases[code]);
        if (!key || !count || PyDict_SetItem(phases, key, count) < 0) Py_CLEAR(phases);
        Py_XDECREF(key);
        Py_XDECREF(count);
    }
    if (!phases) return NULL;
    return Py_BuildValue("(NLLL)", phases, (long long)scanner->events, (long long)scanner->without_phase,
                         (long long)scanner->python_functions);
}

static PyMethodDef METHODS[] = {
    {"scanner", scanner_new, METH_VARARGS, "scanner(seed): a new scanner."},
    {"consume", consume, METH_VARARGS, "consume(scanner, buffer, start): where the events that could be read from start end."},
    {"rows", rows, METH_O, "rows(scanner): events kept so far."},
    {"take", take, METH_O, "take(scanner): {table: {column: (address, rows, owner)}}, memory that the scanner gives away."},
    {"strings", strings, METH_O, "strings(scanner): every text so far; codes are positions in it."},
    {"counts", counts, METH_O, "counts(scanner): ({code of ph: events}, events, events without ph, python functions)."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};
static PyModuleDef MODULE_DEF = {PyModuleDef_HEAD_INIT, "_scan", "The native scanner of Kineto events.", 0, METHODS, SLOTS, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void) { return PyModuleDef_Init(&MODULE_DEF); }
