package trainer

import (
	"runtime"
	"runtime/metrics"
)

// The collector of its own accord waits until there is as much garbage as there is memory in use, and the KV cache and
// the intermediate values of a model are counted as used. Compiling a graph leaves some megabytes of nodes, and
// rollouts leave more, so that a long training would hold twice what is planned.

const (
	// mostGarbage is the part of the memory in use that garbage may have after an update.
	mostGarbage = 0.25
	// leastGarbage is what is not worth collecting.
	leastGarbage = 64 << 20
)

// collectGarbage collects garbage if there is much.
func collectGarbage() {
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(used)
	live, all := float64(used[0].Value.Uint64()), float64(used[1].Value.Uint64())
	if all-live > max(leastGarbage, mostGarbage*live) {
		runtime.GC()
	}
}
