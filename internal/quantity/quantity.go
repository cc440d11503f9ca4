// Package quantity writes numbers of things and of bytes as people read them.
package quantity

import (
	"fmt"
	"slices"
	"strings"
)

// Of writes a number of things, which one of them names: 1 group, 2 trajectories, 0 failed batches.
func Of(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	stem, ends := strings.CutSuffix(one, "y")
	plural := one + "s"
	switch {
	case ends && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeou"):
		plural = stem + "ies"
	case slices.ContainsFunc([]string{"s", "x", "ch", "sh"}, func(end string) bool { return strings.HasSuffix(one, end) }):
		plural = one + "es"
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// Bytes writes bytes as MB of 10^6 or GB of 10^9 bytes.
func Bytes(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
