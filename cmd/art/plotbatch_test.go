package main

import (
	"reflect"
	"testing"

	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/pack"
)

// What several sequences read is shared, also where one lies in the row of another and has none of its own.
func TestPartOf(t *testing.T) {
	sequence := func(ids []int32, trained ...int) grpo.Sequence {
		s := grpo.Sequence{IDs: ids, Trained: make([]bool, len(ids)), Logprobs: make([]float32, len(ids)), Weight: 1}
		for _, at := range trained {
			s.Trained[at] = true
		}
		return s
	}
	layout := pack.Layout{Rows: 1, Length: 8, Trained: 8}
	layout.Branches[0] = pack.Branches{Rows: 2, Length: 4, Keys: 8}
	m, err := pack.Rows([]grpo.Sequence{
		sequence([]int32{1, 2, 3, 4, 5, 6, 7}, 3, 6), sequence([]int32{1, 2, 3, 9}, 3),
		sequence([]int32{1, 2, 3, 4, 8, 8, 8}, 5, 6), sequence([]int32{1, 2, 3, 4, 8, 9}, 5),
	}, []pack.Row{
		{Sequence: 0, End: 6}, {Sequence: 1, From: 0, Start: 3, End: 3},
		{Sequence: 2, From: 0, Start: 4, End: 6, Rectangle: 1}, {Sequence: 3, From: 2, Start: 5, End: 5},
	}, layout)
	if err != nil {
		t.Fatal(err)
	}
	want := []plot.Rectangle{{Rows: 1, Length: 8, Spans: []plot.Span{
		{Start: 0, End: 4, Kind: plot.Shared}, {Start: 4, End: 6, Kind: plot.Read},
		{Start: 2, End: 3, Kind: plot.Trained}, {Start: 5, End: 6, Kind: plot.Trained}, {Start: 2, End: 3, Kind: plot.Trained},
	}}, {Rows: 2, Length: 4, Spans: []plot.Span{
		{Start: 0, End: 1, Kind: plot.Shared}, {Start: 1, End: 2, Kind: plot.Read},
		{Start: 0, End: 2, Kind: plot.Trained}, {Start: 0, End: 1, Kind: plot.Trained},
	}}}
	part := partOf(m, "one")
	if !reflect.DeepEqual(part.Rectangles, want) {
		t.Errorf("%+v", part.Rectangles)
	}
	if part.Name != "one: 16 tokens, 6 trained" {
		t.Error(part.Name)
	}
}
