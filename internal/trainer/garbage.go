package trainer

import (
	"runtime"
	"runtime/debug"
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
	// leastFree is what is not worth returning to the system, which provides it again page by page.
	leastFree = 512 << 20
)

// collectGarbage collects garbage if there is much, and returns to the system what is free, which the runtime would
// keep for as much garbage as there is memory in use: a server trains many models, whose states are as many large
// objects that come and go.
func collectGarbage() {
	used := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(used)
	live, all, free := float64(used[0].Value.Uint64()), float64(used[1].Value.Uint64()), float64(used[2].Value.Uint64())
	switch most := mostGarbage * live; {
	case free > max(leastFree, most):
		debug.FreeOSMemory()
	case all-live > max(leastGarbage, most):
		runtime.GC()
	}
}
