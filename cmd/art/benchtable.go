package main

import (
	"fmt"
	"time"
)

// columns is the table of results for people. It is printed row by row, as they are measured.
type columns struct{ name int }

// benchTable is as wide as the longest name asks for.
func benchTable(list []job) columns {
	c := columns{len("operation")}
	for _, j := range list {
		c.name = max(c.name, len(j.name))
	}
	return c
}

func (c columns) head() string {
	return fmt.Sprintf("%-*s %11s %11s %7s %9s %7s\n", c.name, "operation", "best", "median", "runs", "GFLOP/s", "GB/s")
}

func (c columns) row(r result) string {
	rate := ""
	if r.GFLOP > 0 {
		rate = fmt.Sprintf("%.1f", r.GFLOP)
	}
	return fmt.Sprintf("%-*s %11s %11s %7d %9s %7.1f\n", c.name, r.Name,
		durationText(time.Duration(r.Best)), durationText(time.Duration(r.Median)), r.Runs, rate, r.GB)
}
