package machine

import (
	"runtime"
	"testing"
	"time"
)

// TestCollectGarbage: beside memory in use of which the collector would allow as much garbage, a tenth of it is
// collected, and less than a twentieth is not.
func TestCollectGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector touches all memory")
	}
	const used = 2 << 30 // no page of it is touched
	cache := make([]byte, used)
	runtime.GC()
	var garbage []byte
	collected := func(bytes int) bool {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		garbage = make([]byte, bytes)
		garbage = nil
		CollectGarbage()
		runtime.ReadMemStats(&after)
		return after.NumForcedGC > before.NumForcedGC
	}
	if collected(used / 100) {
		t.Error("a hundredth of what is in use was collected")
	}
	if !collected(used / 10) {
		t.Error("a tenth of what is in use was left")
	}
	if u := heapUse(); u.live > used*21/20 {
		t.Errorf("%.0f bytes are left", u.live)
	}
	if collected(0) {
		t.Error("what was just collected was collected again, though it may not be swept yet")
	}
	_ = garbage
	runtime.KeepAlive(cache)
}

// TestReturnMemory: what was used and is not any more goes back to the system.
func TestReturnMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector touches all memory")
	}
	use := func() {
		once := make([]byte, 3*leastFree)
		for i := 0; i < len(once); i += 4096 {
			once[i] = 1
		}
		runtime.KeepAlive(once)
	}
	use()
	runtime.GC()
	if free := heapUse().free; free < 2*leastFree { // otherwise the test shows nothing
		t.Skipf("the runtime has returned it by itself: %.0f bytes are free", free)
	}
	ReturnMemory()
	for returning.Load() {
		time.Sleep(time.Millisecond)
	}
	if free := heapUse().free; free > leastFree {
		t.Errorf("%.0f bytes are free", free)
	}
}
