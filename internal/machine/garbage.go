package machine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
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
		Collect()
	}
}

// CollectAtOnce collects garbage if there is more than 64 MiB, whatever is in use. It is for calls that are rare and
// take longer than that, such as those that compile a graph.
func CollectAtOnce() {
	if heapUse().garbage() > leastGarbage {
		Collect()
	}
}

// Collect collects garbage and returns when marking has ended: from then on allocations reuse what is free.
// [runtime.GC] also waits until all of it is swept, and yields after each span, which takes up to a second on cores
// that are busy with a training.
func Collect() {
	collections := func() uint64 { return read("/gc/cycles/forced:gc-cycles")[0] } // that were asked for
	before := collections()
	go runtime.GC()
	for collections() == before {
		time.Sleep(time.Millisecond)
	}
	allocatedBefore.Store(read("/gc/heap/allocs:bytes")[0])
}

// allocatedBefore is what had been allocated, in all, at the end of the last [Collect].
var allocatedBefore atomic.Uint64

// returning is set while memory is returned.
var returning atomic.Bool

// ReturnMemory is [CollectGarbage], and returns to the system what is free, which the runtime would keep for as much
// garbage as there is memory in use: a server trains many models, whose states are as many large objects that come and
// go. That is done in the background, and takes seconds where many gigabytes are free.
func ReturnMemory() {
	if u := heapUse(); u.free <= max(leastFree, mostFree*u.live) {
		CollectGarbage()
		return
	}
	if returning.CompareAndSwap(false, true) {
		go func() {
			defer returning.Store(false)
			debug.FreeOSMemory()
		}()
	}
}

// heap is the use of Go's heap in bytes: live after the last collection, all objects, free, and allocated since the
// last [Collect].
type heap struct{ live, objects, free, allocated float64 }

// garbage is at most what may be garbage. Objects include what the last collection found and was not swept yet.
func (h heap) garbage() float64 { return min(h.objects-h.live, h.allocated) }

func heapUse() heap {
	x := read("/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes",
		"/gc/heap/allocs:bytes")
	return heap{float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3] - min(x[3], allocatedBefore.Load()))}
}

// read returns metrics of the runtime.
func read(names ...string) []uint64 {
	list := make([]metrics.Sample, len(names))
	for i, n := range names {
		list[i].Name = n
	}
	metrics.Read(list)
	values := make([]uint64, len(names))
	for i := range list {
		values[i] = list[i].Value.Uint64()
	}
	return values
}
