//go:build !cgo

package main

func inspectXLA() xlaReport {
	return xlaReport{
		Plugins: []xlaPlugin{},
		Problem: "not in this program: it was built without cgo. Install a C compiler, and build with CGO_ENABLED=1.",
	}
}
