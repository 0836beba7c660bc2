/* walk: turns an iterable of sentences into the text that sptx_corpus_sentences() reads, a million tokens at a time.
 *
 *   walk(iterator, convert, words_only, most) -> (text, offsets, starts, ended)
 *
 *   text      bytes: the tokens, one behind the other
 *   offsets   bytes of int64 [tokens + 1]: token i is text[offsets[i] : offsets[i + 1]]
 *   starts    bytes of uint64 [sentences + 1]: sentence i is the tokens starts[i] .. starts[i + 1] - 1
 *   ended     False: `most` tokens or more were taken, and the iterator may have more sentences
 *
 * A sentence is walked here if it is a list or tuple of str, bytes or int; with words_only, of str that a line of a vocabulary file can
 * hold. For any other sentence convert(sentence, number of the sentence in this call) returns a list of bytes, or raises. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Part of CPython since 3.3, and of the limited API since 3.10. */
extern const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size);

struct array {
    char *data;
    uint64_t used, capacity; /* in bytes */
};

struct walked {
    struct array text, offsets, starts;
    uint64_t tokens, sentences;
};

static int append_bytes(struct array *array, const void *bytes, uint64_t count) {
    if (array->used + count >= array->capacity) { /* `data` is allocated even for 0 items, so that it is never NULL afterwards */
        uint64_t capacity = 2 * (array->used + count) + 4096;
        char *grown = realloc(array->data, capacity);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        array->data = grown;
        array->capacity = capacity;
    }
    memcpy(array->data + array->used, bytes, count);
    array->used += count;
    return 0;
}

/* Returns 1 if a line of a vocabulary file can contain the word unchanged. Words that begin with \x01 are names that Python has made (_corpus.py). */
static int is_plain(const char *word, Py_ssize_t length) {
    if (!length || *word == 1) return 0;
    for (Py_ssize_t i = 0; i < length; i++)
        if (!word[i] || (word[i] >= '\t' && word[i] <= '\r')) return 0;
    return 1;
}

static enum taken take_token(struct walked *walked, PyObject *token, int words_only) {
    Py_ssize_t length = 0;
    const char *word = NULL;
    char digits[24];
    if (PyUnicode_Check(token)) {
        word = PyUnicode_AsUTF8AndSize(token, &length);
        if (!word) return leave_to_others(); /* a lone surrogate */
        if (words_only && !is_plain(word, length)) return OTHERS;
    } else if (PyBytes_Check(token) && !words_only) {
        char *bytes = NULL;
        if (PyBytes_AsStringAndSize(token, &bytes, &length)) return leave_to_others();
        word = bytes;
    } else if (PyLong_CheckExact(token) && !words_only) {
        int past;
        long long number = PyLong_AsLongLongAndOverflow(token, &past);
        if (past || (number == -1 && PyErr_Occurred())) return leave_to_others();
        length = snprintf(digits, sizeof digits, "%lld", number);
        word = digits;
    }
    if (!word) return OTHERS;
    if (append_bytes(&walked->text, word, (uint64_t)length) || append_bytes(&walked->offsets, &walked->text.used, sizeof walked->text.used))
        return EXCEPTION;
    walked->tokens++;
    return TAKEN;
}

/* Appends a sentence. If one of its tokens is of a type that only Python handles, nothing is appended. */
static enum taken take_sentence(struct walked *walked, PyObject *sentence, int words_only) {
    const struct walked before = *walked;
    int is_list = PyList_CheckExact(sentence);
    if (!is_list && !PyTuple_Check(sentence)) return OTHERS;
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(sentence) : PyTuple_Size(sentence)); i++) {
        PyObject *token = is_list ? PyList_GetItem(sentence, i) : PyTuple_GetItem(sentence, i); /* borrowed: no Python code runs here */
        enum taken taken = token ? take_token(walked, token, words_only) : EXCEPTION;
        if (taken == TAKEN) continue;
        walked->text.used = before.text.used;
        walked->offsets.used = before.offsets.used;
        walked->tokens = before.tokens;
        return taken;
    }
    walked->sentences++;
    return append_bytes(&walked->starts, &walked->tokens, sizeof walked->tokens) ? EXCEPTION : TAKEN;
}

static enum taken take_any(struct walked *walked, PyObject *sentence, PyObject *convert, int words_only) {
    enum taken taken = take_sentence(walked, sentence, words_only);
    if (taken != OTHERS) return taken;
    PyObject *number = PyLong_FromUnsignedLongLong(walked->sentences);
    PyObject *plain = number ? PyObject_CallFunctionObjArgs(convert, sentence, number, NULL) : NULL;
    Py_XDECREF(number);
    taken = plain ? take_sentence(walked, plain, 0) : EXCEPTION;
    Py_XDECREF(plain);
    if (taken == OTHERS) PyErr_SetString(PyExc_TypeError, "convert() returned no list of bytes");
    return taken == TAKEN ? TAKEN : EXCEPTION;
}

PyObject *walk(PyObject *self, PyObject *arguments) {
    PyObject *iterator, *convert, *sentence;
    int words_only;
    unsigned long long most;
    struct walked walked = {.tokens = 0};
    enum taken taken = TAKEN;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOpK", &iterator, &convert, &words_only, &most)) return NULL;
    if (!PyIter_Check(iterator)) return PyErr_Format(PyExc_TypeError, "walk() walks an iterator");
    if (append_bytes(&walked.offsets, &walked.tokens, sizeof walked.tokens) || append_bytes(&walked.starts, &walked.tokens, sizeof walked.tokens))
        taken = EXCEPTION;
    int ended = 0;
    while (taken == TAKEN && walked.tokens < most && walked.sentences < most) {
        sentence = PyIter_Next(iterator);
        ended = !sentence;
        if (ended) break;
        taken = take_any(&walked, sentence, convert, words_only);
        Py_DECREF(sentence);
        if (taken == TAKEN && PyErr_CheckSignals()) taken = EXCEPTION;
    }
    if (ended && PyErr_Occurred()) taken = EXCEPTION;
    PyObject *found = taken == TAKEN ? Py_BuildValue("y#y#y#O", walked.text.data ? walked.text.data : "", (Py_ssize_t)walked.text.used,
                                                     walked.offsets.data, (Py_ssize_t)walked.offsets.used, walked.starts.data,
                                                     (Py_ssize_t)walked.starts.used, ended ? Py_True : Py_False)
                                     : NULL;
    free(walked.text.data);
    free(walked.offsets.data);
    free(walked.starts.data);
    return found;
}
