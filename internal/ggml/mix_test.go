package ggml_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
)

// TestTypes_Reference: types are those of llama-quantize. The command is in testdata/mix.py.
func TestTypes_Reference(t *testing.T) {
	f, err := os.Open("testdata/mix.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	models := 0
	var name string
	var about ggml.Model
	var tensors []ggml.Header
	var want []string
	check := func() {
		if models++; models == 1 {
			return
		}
		types, err := ggml.Mix(name).Types(about, tensors)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range tensors {
			if types[i].String() != want[i] {
				t.Errorf("%s, %+v: %s is %v, want %s", name, about, x.Name, types[i], want[i])
			}
		}
		about, tensors, want = ggml.Model{}, nil, nil
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if header, ok := strings.CutPrefix(lines.Text(), "# "); ok {
			check()
			if _, err := fmt.Sscan(header, &name, &about.Architecture, &about.Layers, &about.Heads, &about.KVHeads,
				&about.Experts); err != nil {
				t.Fatal(err)
			}
			continue
		}
		fields := strings.Fields(lines.Text())
		var shape []int
		for dim := range strings.SplitSeq(fields[1], "x") {
			var n int
			if _, err := fmt.Sscan(dim, &n); err != nil {
				t.Fatal(err)
			}
			shape = append(shape, n)
		}
		for _, group := range fields[2:] {
			ty, layers, _ := strings.Cut(group, ":")
			for layer := range strings.SplitSeq(layers, ",") {
				full := fields[0]
				if layer != "-1" {
					full = "blk." + layer + "." + full
				}
				tensors = append(tensors, ggml.Header{Name: full, Shape: shape, Type: ggml.F32})
				want = append(want, ty)
			}
		}
	}
	check()
	if models != 33 {
		t.Errorf("%d mixes, want 33", models)
	}
}

// TestTypes_Q4K: all matrices but the head have the one type, and an unknown mix is refused.
func TestTypes_Q4K(t *testing.T) {
	tensors := []ggml.Header{
		{"token_embd.weight", []int{9, 256}, ggml.BF16}, {"output.weight", []int{9, 256}, ggml.BF16},
		{"blk.0.attn_v.weight", []int{9, 256}, ggml.BF16}, {"blk.0.ffn_down.weight", []int{9, 100}, ggml.BF16},
		{"blk.0.ffn_up.weight", []int{1, 256}, ggml.BF16},
	}
	types, err := ggml.Mix("Q4_K").Types(ggml.Model{Layers: 1}, tensors)
	if got := fmt.Sprint(types, err); got != "[Q4_K Q6_K Q4_K F16 BF16] <nil>" {
		t.Error(got)
	}
	if _, err := ggml.Mix("Q3_K").Types(ggml.Model{}, tensors); err == nil || !strings.Contains(err.Error(), "Q4_K_M") {
		t.Error(err)
	}
}
