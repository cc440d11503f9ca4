package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag of bytes: 64MiB, 20GiB, 1048576. 0 is a default.
type size int64

// units are those of a size, the larger ones first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// String implements [flag.Value].
func (s *size) String() string {
	for _, u := range units {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return ""
}

// Set implements [flag.Value].
func (s *size) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("want bytes, such as 1048576, 64MiB or 20GiB")
}
