package machine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The collector of its own accord waits until there is as much garbage as there is memory in use, and the weights and
// the KV cache of a model are counted as used. Rollouts leave garbage, and so does compiling a graph: a server whose
// cache takes nearly all of the memory would be killed before the collector begins.

const (
	// mostGarbage is the part of the memory in use that garbage may have: half of what plans leave free.
	mostGarbage = 0.05
	// leastGarbage is what is not worth collecting.
	leastGarbage = 64 << 20
	// mostFree is the part of the memory in use that may be free and not returned to the system.
	mostFree = 0.05
	// leastFree is what is not worth returning to the system, which provides it again page by page.
	leastFree = 128 << 20
)

// CollectGarbage collects garbage if there is more than a twentieth of the memory in use, and at least 64 MiB. It takes
// some microseconds where there is not, and else some milliseconds.
func CollectGarbage() {
	if u := heapUse(); u.garbage() > max(leastGarbage, mostGarbage*u.live) {
		runtime.GC()
	}
}

// CollectAtOnce collects garbage if there is more than 64 MiB, whatever is in use. It is for calls that are rare and
// take longer than that, such as those that compile a graph.
func CollectAtOnce() {
	if heapUse().garbage() > leastGarbage {
		runtime.GC()
	}
}

// ReturnMemory is [CollectGarbage], and returns to the system what is free, which the runtime would keep for as much
// garbage as there is memory in use: a server trains many models, whose states are as many large objects that come and
// go. It takes seconds where many gigabytes are free.
func ReturnMemory() {
	if u := heapUse(); u.free > max(leastFree, mostFree*u.live) {
		debug.FreeOSMemory()
		return
	}
	CollectGarbage()
}

// heap is the use of Go's heap in bytes: live after the last collection, all objects, and free.
type heap struct{ live, objects, free float64 }

func (h heap) garbage() float64 { return h.objects - h.live }

func heapUse() heap {
	used := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(used)
	return heap{float64(used[0].Value.Uint64()), float64(used[1].Value.Uint64()), float64(used[2].Value.Uint64())}
}
