package graphx

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// HasOperation reports whether a device has an operation that GoMLX knows nothing of, for [Operation].
func HasOperation(device compute.Backend, name string) bool {
	d, ok := device.(interface{ HasOperation(name string) bool })
	return ok && d.HasOperation(name)
}

// Operation builds an operation of the device, and returns its results, none a scalar, whose shapes are given: it is an
// error where the device has others. It has no gradient.
//
// For GoMLX it is the call of a function, which declares operands and results and which the device never runs.
func Operation(name string, results []shapes.Shape, in ...*graph.Node) []*graph.Node {
	g := in[0].Graph()
	// A name is that of one function; the last node gives each call another.
	f := graph.NewFunction(g, fmt.Sprintf("%s.%d", name, g.LastNode().Id()), func(g *graph.Graph) []*graph.Node {
		for i, x := range in {
			graph.Parameter(g, fmt.Sprintf("x%d", i), x.Shape())
		}
		list := make([]*graph.Node, len(results))
		for i, s := range results {
			list[i] = graph.Iota(g, s, 0) // zeros would be those of the main function, which GoMLX keeps
		}
		return list
	})
	return f.Call(in...)
}
