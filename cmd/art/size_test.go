package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"1": 1, "64KiB": 64 << 10, "64MiB": 64 << 20, "20GiB": 20 << 30, "2TiB": 2 << 40, "1025": 1025,
		"0": 0, "-1": 0, "": 0, "MiB": 0, "1.5GiB": 0, "64MB": 0, "64 MiB": 0, "9000000TiB": 0,
	} {
		var got size
		if err := got.Set(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, error %v; want %d", text, got, err, want)
		}
		if want > 0 && got.String() != text {
			t.Errorf("%q is written as %q", text, got.String())
		}
	}
}
