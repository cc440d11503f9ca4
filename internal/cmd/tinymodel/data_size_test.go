package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "Add it": 2, "What is 7+15?": 8, `{"a": 12}`: 7, "12\nX": 4, "to (be)": 4,
	} {
		if got := size(text); got != want {
			t.Errorf("size of %q is %d, want %d", text, got, want)
		}
	}
}
