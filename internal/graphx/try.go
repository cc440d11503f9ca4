package graphx

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that [Try] recovered. Its message is that of the panic, on one line and without a
// stack; %+v prints the stack too.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the panic, as [debug.Stack] prints it
}

// Error returns the message of the panic.
func (e *PanicError) Error() string { return fmt.Sprint(e.Value) }

// Unwrap returns the error that was given to panic, or nil if it was not an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Format prints the message, and for %+v the stack below it.
func (e *PanicError) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	case verb == 'v' && f.Flag('+'):
		fmt.Fprintf(f, "%s\n\n%s", e.Error(), e.Stack)
	default:
		fmt.Fprint(f, e.Error())
	}
}

// Try calls build and returns its panic, if any, as a [*PanicError].
//
// A stack overflow and other fatal errors of the runtime are not panics and cannot be caught.
func Try(build func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	build()
	return nil
}
