package graphx

import (
	"cmp"
	"strings"

	"github.com/gomlx/compute"
)

// Profile is what the code around a device must know to use it well. It stands in a table here because the devices of
// GoMLX and go-xla cannot be asked.
type Profile struct {
	// SlowCompile is set where compiling a graph takes seconds. Batches are then padded to few shapes.
	SlowCompile bool
	// TokensPerCall is the number of tokens that each sequence gets per call while decoding: more than one where the
	// device runs the loop itself, because a call costs a synchronisation, and a gather of what its sequences have cached.
	TokensPerCall int
	// FusedAttention is set where attention keeps no scores in memory.
	FusedAttention bool
	// BFloat16 is set where the device multiplies bfloat16 matrices with float32 accumulation.
	BFloat16 bool
	// UnknownMemory is set where tensors live in memory whose size is not known: go-xla does not report that of a GPU.
	UnknownMemory bool
}

// profiles by the name under which a device is registered.
var profiles = map[string]Profile{
	"cpu": {TokensPerCall: 1, FusedAttention: true, BFloat16: true},
	"xla": {SlowCompile: true, TokensPerCall: 32, BFloat16: true, UnknownMemory: true},
}

// ProfileOf returns the profile of a device.
func ProfileOf(device compute.Backend) Profile { return NamedProfile(device.Name()) }

// NamedProfile returns the profile of the device that a name opens: its name in GoMLX's registry, optionally followed
// by a colon and a configuration.
func NamedProfile(name string) Profile {
	kind, config, _ := strings.Cut(name, ":")
	p := profiles[kind]
	p.TokensPerCall = cmp.Or(p.TokensPerCall, 1)
	if plugin, _, _ := strings.Cut(config, ","); plugin == "cpu" {
		p.UnknownMemory = false
	}
	return p
}
