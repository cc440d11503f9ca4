//go:build !unix

package openai

import "time"

var start = time.Now()

// cpuTime returns the time that has passed, where the process cannot tell what it has computed.
func cpuTime() time.Duration { return time.Since(start) }
