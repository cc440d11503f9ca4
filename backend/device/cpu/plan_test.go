package cpu

import (
	"flag"
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

var update = flag.Bool("update", false, "write testdata/attention.plan")

// TestPlan_Golden: the plan of a small attention layer reads as testdata/attention.plan says. Write that with
//
//	go test ./backend/device/cpu -run Plan_Golden -update
func TestPlan_Golden(t *testing.T) {
	const file = "testdata/attention.plan"
	s := &spy{Device: newDevice(t, 2)}
	g := graph.NewGraph(s, "attention")
	parameter := func(name string, dtype dtypes.DType, dims ...int) *graph.Node {
		return graph.Parameter(g, name, shapes.Make(dtype, dims...))
	}
	const batch, heads, queries, size = 2, 2, 8, 4
	x := parameter("x", dtypes.Float32, batch*queries, heads*size)
	mask := parameter("mask", dtypes.Bool, queries, queries)
	var projected [3]*graph.Node
	for i, name := range []string{"q", "k", "v"} {
		w := parameter(name, dtypes.Float32, heads*size, heads*size)
		y := graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
		projected[i] = graph.Transpose(graph.Reshape(y, batch, queries, heads, size), 1, 2)
	}
	y, _ := attend(projected[0], projected[1], projected[2], mask)
	y = graph.Reshape(graph.Transpose(y, 1, 2), batch*queries, heads*size)
	o := parameter("o", dtypes.Float32, heads*size, heads*size)
	g.Compile(graph.Add(x, graph.DotGeneral(y, []int{1}, nil, o, []int{1}, nil)))
	got := s.plans[0].String()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the plan is now\n%s\nwant\n%s", got, want)
	}
}

// TestPlan_String: an executable prints its plan.
func TestPlan_String(t *testing.T) {
	d := newDevice(t, 1)
	e := compileGraph(t, d, []shapes.Shape{row(3)}, func(f compute.Function, x []compute.Value) []compute.Value {
		return []compute.Value{must(f.Neg(x[0]))(t)}
	})
	if got, want := e.(*executable).String(), e.(*executable).plan.String(); got != want || got == "" {
		t.Errorf("%q, want %q", got, want)
	}
}
