package main

import (
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	for ns, want := range map[int64]string{7: "7 ns", 1500: "1.50 µs", 2_500_000: "2.50 ms", 3_000_000_000: "3.00 s"} {
		if got := durationText(time.Duration(ns)); got != want {
			t.Errorf("%d ns is %q, want %q", ns, got, want)
		}
	}
	if got := wrap("aa bb cc  dddddd e", 5); got != "aa bb\ncc\ndddddd\ne" {
		t.Errorf("%q", got)
	}
}
