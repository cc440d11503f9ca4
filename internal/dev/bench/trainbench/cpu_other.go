//go:build !unix

package trainbench

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
