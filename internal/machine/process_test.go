package machine

import (
	"os"
	"runtime"
	"testing"
)

// TestResident: from the file of Linux, and of this process, which has touched 64 MiB.
func TestResident(t *testing.T) {
	status := "Name:\tx\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\n"
	now, peak, known := Resident(system(map[string]string{"proc/self/status": status}))
	if now != 200<<10 || peak != 300<<10 || !known {
		t.Errorf("%d, %d, %v", now, peak, known)
	}
	if _, _, known := Resident(system(nil)); known {
		t.Error("known without a file")
	}
	if runtime.GOOS != "linux" {
		return
	}
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	if now, peak, known := Resident(os.DirFS("/")); !known || now < 64<<20 || peak < now {
		t.Errorf("%d, %d, %v after touching 64 MiB", now, peak, known)
	}
	runtime.KeepAlive(held)
}
