//go:build cgo

package xla

// Fault returns the error that a device makes of one of its plug-in, in a call or in a transfer.
func Fault(name string, err error) error { return (&device{name: name}).fault(err, nil) }
