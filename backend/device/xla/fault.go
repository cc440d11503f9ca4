//go:build cgo

package xla

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pjrt"
)

// What an [Error] is about.
var (
	// ErrCompile: the plug-in does not compile a program.
	ErrCompile = errors.New("the program does not compile")
	// ErrMemory: the memory of the device, or of the host where it is used for it, does not suffice.
	ErrMemory = errors.New("out of memory")
	// ErrLost: the device does not answer any more. All that it held is lost.
	ErrLost = errors.New("the device is lost")
)

// remedies say what to do.
var remedies = map[error]string{
	ErrCompile: `take another device, or another version of the plug-in: "art doctor" lists both`,
	ErrMemory: `compute less at once, with smaller Slots, Context, CacheTokens or MicroTokens of local.Options or its ` +
		`Weights "bfloat16", and end other programs on the device`,
	ErrLost: "close what uses the device, and go on with another one; to use this one again, start the program anew. " +
		"A run goes on from its newest step",
}

// Error is a failure of a device that has been opened: [ErrCompile], [ErrMemory] or [ErrLost]. GoMLX wraps it.
type Error struct {
	Kind   error  // one of the three
	Device string // as it was opened: "xla:cuda"
	Err    error  // of the plug-in
}

// Error returns "device: kind: err (what to do)".
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v: %v (%s)", e.Device, e.Kind, e.Err, remedies[e.Kind])
}

// Unwrap returns Kind and Err.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// DeviceFault returns Kind. By it, code that does not import this package knows a failure of the device.
func (e *Error) DeviceFault() error { return e.Kind }

// fault returns the error of a plug-in as an [Error]. Where its code and text do not tell what kind it is, it is one of
// the kind given, and for nil the error itself.
func (d *device) fault(err, kind error) error {
	if err == nil {
		return nil
	}
	if found := kindOf(err.Error()); found != nil {
		kind = found
	}
	if kind == nil {
		return err
	}
	return &Error{Kind: kind, Device: d.name, Err: err}
}

// coded is how go-xla writes the status of a plug-in.
var coded = regexp.MustCompile(`PJRT error \(code=(\d+)\)`)

// kindOf tells what an error is about by the code of its status, and by CUDA's name for it, which an internal error of
// XLA has in its text. It is nil where neither tells.
func kindOf(text string) error {
	m := coded.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	code, _ := strconv.Atoi(m[1]) // at worst 0, which is no error
	switch pjrt.PJRT_Error_Code(code) {
	case pjrt.PJRT_Error_Code_RESOURCE_EXHAUSTED:
		return ErrMemory
	case pjrt.PJRT_Error_Code_UNAVAILABLE, pjrt.PJRT_Error_Code_DATA_LOSS:
		return ErrLost
	}
	if strings.Contains(text, "CUDA_ERROR_OUT_OF_MEMORY") {
		return ErrMemory
	}
	if fatal.MatchString(text) {
		return ErrLost
	}
	return nil
}

// fatal are the errors after which CUDA does nothing more for a process, as the documentation of its driver API says
// (CUresult).
var fatal = regexp.MustCompile(`CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_TIMEOUT|LAUNCH_FAILED|ASSERT|HARDWARE_STACK_ERROR|` +
	`ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|` +
	`CONTEXT_IS_DESTROYED|DEINITIALIZED|CONTAINED|DEVICE_UNAVAILABLE|EXTERNAL_DEVICE|TENSOR_MEMORY_LEAK)`)
