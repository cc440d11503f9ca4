package art

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// grace is how long a user's function may take to return after its context has ended. After that it is abandoned.
const grace = time.Second

var (
	errGoexit    = errors.New("called runtime.Goexit, as testing.T.FailNow does: return an error instead")
	errAbandoned = errors.New("did not return after its context had ended, and was abandoned")
)

// outcome is how a function of the user ended.
type outcome[T any] struct {
	value T
	err   error
	late  bool // the context had ended before it returned
}

// guard calls f on its own goroutine, and turns a panic or runtime.Goexit into an error. When ctx ends and f does not
// return within [grace], f is abandoned and what it returns later is dropped.
func guard[T any](ctx context.Context, f func() (T, error)) outcome[T] {
	done := make(chan outcome[T], 1)
	go func() { protect(ctx, f, done) }()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o
	case <-timer.C:
		return outcome[T]{err: errAbandoned, late: true}
	}
}

// protect sends how f ended: with a value, an error, a panic or runtime.Goexit.
func protect[T any](ctx context.Context, f func() (T, error), done chan<- outcome[T]) {
	o := outcome[T]{err: errGoexit}
	defer func() {
		if r := recover(); r != nil {
			o.err = newPanicError(r)
		}
		o.late = ctx.Err() != nil
		done <- o
	}()
	o.value, o.err = f()
}

const (
	maxFrames    = 128 // of a panic's stack that are read
	quotedFrames = 4   // that its error quotes
)

// panicError is a recovered panic.
type panicError struct {
	value  any
	frames []runtime.Frame // of the code that panicked, the innermost first
	cut    bool            // there are more
}

// newPanicError describes a panic with the given value. It must be called by the deferred function that recovered it.
func newPanicError(value any) *panicError {
	pcs := make([]uintptr, maxFrames)
	pcs = pcs[:runtime.Callers(2, pcs)]
	return &panicError{value, panicFrames(pcs), len(pcs) == maxFrames}
}

// panicFrames returns the frames of the code that panicked: without those that recovered the panic, those of the
// runtime, and those of this package that called the code.
func panicFrames(pcs []uintptr) []runtime.Frame {
	var frames []runtime.Frame
	panicked := false
	for all := runtime.CallersFrames(pcs); ; {
		frame, more := all.Next()
		if panicked && !isRuntime(frame.Function) {
			frames = append(frames, frame)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			break
		}
	}
	own := reflect.TypeFor[panicError]().PkgPath() + "."
	for len(frames) > 1 && strings.HasPrefix(frames[len(frames)-1].Function, own) {
		frames = frames[:len(frames)-1]
	}
	return frames
}

// isRuntime reports whether a function belongs to Go's runtime: maps are in internal/runtime/maps.
func isRuntime(function string) bool {
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "internal/runtime/")
}

// Error says what the panic was and where:
//
//	panic: assignment to entry in nil map, at main.play (tictactoe/main.go:57),
//	called by main.main.func1 (tictactoe/main.go:40)
func (e *panicError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "panic: %v", e.value)
	between := ", at "
	for _, f := range e.frames[:min(quotedFrames, len(e.frames))] {
		dir, file := path.Split(f.File)
		fmt.Fprintf(&b, "%s%s (%s:%d)", between, path.Base(f.Function), path.Join(path.Base(dir), file), f.Line)
		between = ", called by "
	}
	if len(e.frames) > quotedFrames {
		b.WriteString(between + "...")
	}
	return b.String()
}

// stack returns the frames in the form of [debug.Stack], without addresses.
func (e *panicError) stack() string {
	var b strings.Builder
	for _, f := range e.frames {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	if e.cut {
		b.WriteString("...\n")
	}
	return b.String()
}

// Unwrap returns the panic's value when that is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
