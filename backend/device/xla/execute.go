//go:build cgo && unix

package xla

/*
#include <stddef.h>

// As in pjrt_c_api.h (major version 0): a table begins with a head, and has its functions in this order. A function
// takes a struct and returns an error, NULL for none.
typedef void *(*function)(void *args);

typedef struct {
	size_t size;
	void *extension;
	struct { size_t size; void *extension; int major, minor; } version;
	function functions[];
} table;

enum {
	ERROR_DESTROY = 0,
	EVENT_DESTROY = 5,
	EVENT_AWAIT = 8,
	PROGRAM_DESTROY = 40,
	NUM_OUTPUTS = 44,
	PROGRAM_OF_LOADED = 51,
	EXECUTE = 55,
	BUFFER_DESTROY = 58,
};

// The arguments of functions that take one pointer. Those that free it, or wait for it, have no answer.
typedef struct {
	size_t size;
	void *extension, *of;
	union { void *pointer; size_t number; } answer;
} one;

static void *act(const table *t, int place, void *of) {
	one args = {offsetof(one, answer), NULL, of, {NULL}};
	return t->functions[place](&args);
}

// num_outputs returns how many results a loaded program has, 0 when the plug-in does not say.
static size_t num_outputs(const table *t, void *loaded) {
	one program = {sizeof program, NULL, loaded, {NULL}};
	void *failed = t->functions[PROGRAM_OF_LOADED](&program);
	one count = {sizeof count, NULL, program.answer.pointer, {NULL}};
	if (!failed) {
		failed = t->functions[NUM_OUTPUTS](&count);
		act(t, PROGRAM_DESTROY, program.answer.pointer);
	}
	if (failed) {
		act(t, ERROR_DESTROY, failed);
		return 0;
	}
	return count.answer.number;
}

// The arguments of PJRT_LoadedExecutable_Execute.
typedef struct {
	size_t size;
	void *extension, *loaded, *options, *inputs;
	size_t devices, inputs_of_each;
	void ***outputs;
	void **events;
	void *device;
} execute_args;

static void *execute(const table *t, execute_args *args) {
	void *failed = t->functions[EXECUTE](args);
	if (failed || !args->events) return failed;
	for (size_t i = 0; i < args->devices; i++) {
		void *error = act(t, EVENT_AWAIT, args->events[i]);
		if (error && failed) act(t, ERROR_DESTROY, error);
		else if (error) failed = error;
	}
	if (!failed) return NULL;
	size_t n = num_outputs(t, args->loaded);
	for (size_t i = 0; i < args->devices; i++) {
		act(t, EVENT_DESTROY, args->events[i]);
		for (size_t j = 0; j < n; j++) act(t, BUFFER_DESTROY, args->outputs[i][j]);
	}
	return failed;
}

// C has no closures: each plug-in has a function of its own.
static const table *tables[4];

static void *execute0(void *args) { return execute(tables[0], args); }
static void *execute1(void *args) { return execute(tables[1], args); }
static void *execute2(void *args) { return execute(tables[2], args); }
static void *execute3(void *args) { return execute(tables[3], args); }

static void *art_execute(int slot, void *of) {
	static const function all[] = {execute0, execute1, execute2, execute3};
	tables[slot] = of;
	return (void *)all[slot];
}
*/
import "C"

import "unsafe"

// executeOf returns the function of a slot that runs programs of a plug-in, as PJRT_LoadedExecutable_Execute, and waits
// for them. Of a program that fails while it runs it frees the results, which may be the only ones to hold the memory
// of donated inputs. go-xla waits after the call, and does not free the results of a run that has failed: with the
// plug-in alone, each one would lose that memory for as long as the process lives.
func executeOf(slot int, plugin table) unsafe.Pointer { return C.art_execute(C.int(slot), plugin.at) }
