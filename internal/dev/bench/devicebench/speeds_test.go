package devicebench

import (
	"testing"

	"github.com/goart-dev/art/internal/machine"
)

// TestReadSize: far more than the caches, at most a quarter of the memory.
func TestReadSize(t *testing.T) {
	available := func(available, limit int64) machine.Memory { return machine.Memory{Available: available, Limit: limit} }
	for name, c := range map[string]struct {
		facts machine.Facts
		want  int64
	}{
		"nothing is known":  {machine.Facts{}, 512 << 20},
		"a small cgroup":    {machine.Facts{Memory: available(23<<30, 1<<30)}, 1 << 28},
		"a large cache":     {machine.Facts{Cache: 266240 << 10, Memory: available(64<<30, 0)}, 4 * 266240 << 10},
		"an enormous cache": {machine.Facts{Cache: 8 << 30, Memory: available(64<<30, 0)}, 4 << 30},
	} {
		if got := readSize(c.facts); got != c.want {
			t.Errorf("%s: reads %d bytes, want %d", name, got, c.want)
		}
	}
}
