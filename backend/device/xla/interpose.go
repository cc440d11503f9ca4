//go:build cgo && unix

package xla

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// A function of the PJRT C API takes a struct and returns an error, NULL for none.
typedef void *(*function)(void *args);

static void *art_call(void *f, void *args) { return ((function)f)(args); }

// art_table opens a plug-in and returns its table of functions. It stays open.
static void *art_table(const char *path, const char **error) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	void *(*table)(void) = library ? (void *(*)(void))dlsym(library, "GetPjrtApi") : NULL;
	if (!table) {
		*error = dlerror();
		return NULL;
	}
	return table();
}

extern void *artCompile(int slot, void *args);

// C has no closures: a plug-in whose programs are kept has a function of its own.
static void *compile0(void *args) { return artCompile(0, args); }
static void *compile1(void *args) { return artCompile(1, args); }
static void *compile2(void *args) { return artCompile(2, args); }
static void *compile3(void *args) { return artCompile(3, args); }

static void *art_compile(int slot) {
	static const function all[] = {compile0, compile1, compile2, compile3};
	return (void *)all[slot];
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// slots is the number of plug-ins of one process that can have functions of this package: compileN and executeN above.
const slots = 4

// table is the table of functions of a plug-in, PJRT_Api. The C API only ever adds functions at its end.
type table struct{ at unsafe.Pointer }

// tableHead is what comes before the functions.
type tableHead struct {
	size      uintptr
	extension unsafe.Pointer
	version   struct {
		size         uintptr
		extension    unsafe.Pointer
		major, minor int32
	}
}

// Places of functions in the table, in the order of PJRT_Api in pjrt_c_api.h (major version 0).
const (
	errorDestroy     = 0
	platformVersion  = 14
	devices          = 16
	compileProgram   = 20
	descriptionKind  = 26
	description      = 29
	destroyProgram   = 40
	serializeProgram = 49
	programOfLoaded  = 51
	executeProgram   = 55
	loadProgram      = 56
	destroyBuffer    = 58 // the last one that is used
)

// openTable loads a plug-in.
func openTable(path string) (table, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	at := C.art_table(name, &why)
	if at == nil && why != nil {
		return table{}, errors.New(C.GoString(why))
	}
	if at == nil {
		return table{}, errors.New("it has no table of functions")
	}
	t := table{at}
	head, last := (*tableHead)(at), uintptr(unsafe.Pointer(t.function(destroyBuffer)))
	if head.version.major != 0 || last >= uintptr(at)+head.size {
		return table{}, fmt.Errorf("%w: it lacks functions that this program needs", ErrVersion)
	}
	return t, nil
}

// function returns where the table holds a function.
func (t table) function(place int) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(t.at, unsafe.Sizeof(tableHead{})+uintptr(place)*unsafe.Sizeof(uintptr(0))))
}

// with returns a copy of the table, which is never freed, with functions of a slot in place of the plug-in's: the one
// that runs programs, and if they are kept the one that compiles them.
func (t table) with(slot int, kept bool) table {
	size := C.size_t((*tableHead)(t.at).size)
	own := table{C.malloc(size)}
	C.memcpy(own.at, t.at, size)
	*own.function(executeProgram) = executeOf(slot, t)
	if kept {
		*own.function(compileProgram) = C.art_compile(C.int(slot))
	}
	return own
}

// callHead begins the arguments of each function.
type callHead struct {
	size      uintptr
	extension unsafe.Pointer
}

// call calls a function. args are in memory of C, or hold no pointers of Go. An error of PJRT is what is returned.
func (t table) call(place int, args unsafe.Pointer) unsafe.Pointer {
	return C.art_call(*t.function(place), args)
}

// try calls a function where only the fact matters that it failed.
func (t table) try(place int, args unsafe.Pointer) error {
	failed := t.call(place, args)
	if failed == nil {
		return nil
	}
	destroy := struct {
		callHead
		failed unsafe.Pointer
	}{failed: failed}
	destroy.size = unsafe.Sizeof(destroy)
	t.call(errorDestroy, unsafe.Pointer(&destroy))
	return fmt.Errorf("function %d of the PJRT C API failed", place)
}

// text reads a string of C.
func text(at unsafe.Pointer, size uintptr) []byte { return C.GoBytes(at, C.int(size)) }

// callFunction calls a function of C that takes a pointer.
func callFunction(f, arg unsafe.Pointer) { C.art_call(f, arg) }

// free frees memory of C.
func free(at unsafe.Pointer) { C.free(at) }
