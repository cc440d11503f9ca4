//go:build cgo && unix

package xla

import "C"

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/klauspost/cpuid/v2"
)

// cache keeps the programs of a plug-in in a folder. PJRT calls it to compile, by a table of functions that is the
// plug-in's but for that one and the one that runs programs.
type cache struct {
	plugin  table
	folder  string // "" keeps none
	machine []byte // what programs depend on that the plug-in does not report
}

var (
	cachesMu   sync.Mutex
	caches     []*cache              // by slot
	interposed = map[string]*cache{} // by path
)

// interpose lets go-xla open a plug-in with functions of this package in place of some of its own: one that runs
// programs and frees what failed, and if a folder is given one that keeps programs there. It must come before go-xla
// has opened the plug-in.
func interpose(f file, folder string) error {
	cachesMu.Lock()
	defer cachesMu.Unlock()
	if c := interposed[f.path]; c != nil && (c.folder != "" || folder == "") {
		return nil
	}
	if len(caches) == slots {
		return fmt.Errorf("programs of %d plug-ins at most are kept in one process: unset %s to open another", slots,
			CacheEnv)
	}
	plugin, err := openTable(f.path)
	if err != nil {
		return err
	}
	c := &cache{plugin: plugin, folder: folder}
	if folder != "" {
		if c.machine, err = c.prepare(f); err != nil {
			return err
		}
	}
	caches = append(caches, c)
	own := plugin.with(len(caches)-1, folder != "")
	if err := pjrt.RegisterPreloadedPlugin(f.path, uintptr(own.at)); err != nil {
		return err
	}
	interposed[f.path] = c
	return nil
}

// prepare makes the folder, and returns what programs depend on that the plug-in does not report.
func (c *cache) prepare(f file) (machine []byte, err error) {
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return nil, fmt.Errorf("%s: %w", CacheEnv, err)
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%d %v %s %v %d %q", info.Size(), info.ModTime().UnixNano(), cpuid.CPU.BrandName,
		cpuid.CPU.FeatureSet(), runtime.NumCPU(), os.Getenv(xlaFlags)), nil
}

// compileArgs are PJRT_Client_Compile_Args.
type compileArgs struct {
	callHead
	client  unsafe.Pointer
	program *struct {
		callHead
		code       unsafe.Pointer
		codeSize   uintptr
		format     unsafe.Pointer
		formatSize uintptr
	}
	options     unsafe.Pointer
	optionsSize uintptr
	loaded      unsafe.Pointer // the result
}

// artCompile compiles a program for the plug-in of a slot, or reads what was compiled before.
//
//export artCompile
func artCompile(slot C.int, args unsafe.Pointer) unsafe.Pointer {
	cachesMu.Lock()
	c := caches[slot]
	cachesMu.Unlock()
	return c.compile((*compileArgs)(args))
}

// compile returns an error of PJRT. A program that cannot be read from the folder, or written to it, is compiled again
// by the next process.
func (c *cache) compile(args *compileArgs) unsafe.Pointer {
	name, err := c.name(args)
	if err != nil {
		return c.plugin.call(compileProgram, unsafe.Pointer(args))
	}
	if c.read(name, args) == nil {
		return nil
	}
	failed := c.plugin.call(compileProgram, unsafe.Pointer(args))
	if failed == nil {
		_ = c.write(name, args.loaded)
	}
	return failed
}

// name returns the file of a program: a hash of it and of all that a compiled program depends on. How the program is
// called does not matter.
func (c *cache) name(args *compileArgs) (string, error) {
	sum := sha256.New()
	hashPart(sum, c.machine)
	if err := c.addClient(sum, args.client); err != nil {
		return "", err
	}
	hashPart(sum, text(args.options, args.optionsSize))
	hashPart(sum, text(args.program.format, args.program.formatSize))
	hashPart(sum, unnamed(text(args.program.code, args.program.codeSize)))
	return filepath.Join(c.folder, fmt.Sprintf("%x.pjrt", sum.Sum(nil))), nil
}

// hashPart adds a part to a hash, with its length.
func hashPart(sum hash.Hash, part []byte) {
	fmt.Fprintf(sum, "%d ", len(part))
	sum.Write(part)
}

// unnamed is the text of a program without the name of its module, which GoMLX counts up.
func unnamed(program []byte) []byte {
	if head := []byte("module @"); bytes.HasPrefix(program, head) {
		if end := bytes.IndexByte(program[len(head):], ' '); end >= 0 {
			return program[len(head)+end:]
		}
	}
	return program
}

// addClient adds the version of the platform and the kinds of its devices.
func (c *cache) addClient(sum hash.Hash, client unsafe.Pointer) error {
	type reply struct { // of a function that takes one pointer
		callHead
		of   unsafe.Pointer
		at   unsafe.Pointer
		size uintptr
	}
	ask := func(place int, of unsafe.Pointer) (reply, error) {
		r := reply{of: of}
		r.callHead.size = unsafe.Sizeof(r)
		return r, c.plugin.try(place, unsafe.Pointer(&r))
	}
	version, err := ask(platformVersion, client)
	if err != nil {
		return err
	}
	hashPart(sum, text(version.at, version.size))
	list, err := ask(devices, client)
	if err != nil {
		return err
	}
	for _, device := range unsafe.Slice((*unsafe.Pointer)(list.at), list.size) {
		of, err := ask(description, device)
		if err != nil {
			return err
		}
		kind, err := ask(descriptionKind, of.at)
		if err != nil {
			return err
		}
		hashPart(sum, text(kind.at, kind.size))
	}
	return nil
}

// read loads a program from its file, which begins with a hash of the rest.
func (c *cache) read(name string, args *compileArgs) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content[min(len(content), sha256.Size):])
	if !bytes.HasPrefix(content, sum[:]) {
		return errors.New("xla: a damaged program")
	}
	program := C.CBytes(content[sha256.Size:])
	defer free(program)
	load := struct {
		callHead
		client      unsafe.Pointer
		program     unsafe.Pointer
		size        uintptr
		loaded      unsafe.Pointer // the result
		options     unsafe.Pointer // nil for those that it was compiled with
		optionsSize uintptr
	}{client: args.client, program: program, size: uintptr(len(content) - sha256.Size)}
	load.callHead.size = unsafe.Sizeof(load)
	if err := c.plugin.try(loadProgram, unsafe.Pointer(&load)); err != nil {
		return err
	}
	args.loaded = load.loaded
	return nil
}

// write stores a program.
func (c *cache) write(name string, loaded unsafe.Pointer) error {
	of := struct {
		callHead
		loaded, program unsafe.Pointer
	}{loaded: loaded}
	of.size = unsafe.Sizeof(of)
	if err := c.plugin.try(programOfLoaded, unsafe.Pointer(&of)); err != nil {
		return err
	}
	destroy := struct {
		callHead
		program unsafe.Pointer
	}{program: of.program}
	destroy.size = unsafe.Sizeof(destroy)
	defer func() { _ = c.plugin.try(destroyProgram, unsafe.Pointer(&destroy)) }()
	serialized := struct {
		callHead
		program, at unsafe.Pointer
		size        uintptr
		holder      unsafe.Pointer // of the bytes
		release     unsafe.Pointer // a function that frees the holder
	}{program: of.program}
	serialized.callHead.size = unsafe.Sizeof(serialized)
	if err := c.plugin.try(serializeProgram, unsafe.Pointer(&serialized)); err != nil {
		return err
	}
	content := text(serialized.at, serialized.size)
	callFunction(serialized.release, serialized.holder)
	return writeWhole(name, content)
}

// writeWhole writes a file with a hash before its content, so that other processes see all of it or none.
func writeWhole(name string, content []byte) error {
	part, err := os.CreateTemp(filepath.Dir(name), "part-")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	sum := sha256.Sum256(content)
	_, err = part.Write(append(sum[:], content...))
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}
