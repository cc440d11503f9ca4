// Package race tells whether this program was built with the race detector, for tests.
//
// The detector comes with checks of pointers, which end a process in GoMLX's own Go device: it computes pointers behind
// the end of a slice. Tests that compare with that device skip it then.
package race
