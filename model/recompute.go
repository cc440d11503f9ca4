package model

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
)

// Recomputation is a pass whose gradient keeps little: of each layer its input alone. What else the gradient of a layer
// needs is computed again when its turn comes, so that one layer has it at a time (Chen et al. 2016,
// https://arxiv.org/abs/1604.06174). That costs the forward pass of the layers once more. Operations and their order
// are those of a pass that keeps all, so the gradients have the same bits.
type Recomputation struct {
	stages []stage
	hidden *Node // what the loss is built on
}

// stage is a part of a pass that is computed again: a layer, or what comes before or after them.
type stage struct {
	in    *Node // nil for the first one
	build func(x *Node) *Node
}

// Recomputed is Hidden of a pass without a cache, for a loss whose gradient [Recomputation.Gradient] builds.
func (f *Forward) Recomputed(in Input) (*Node, *Recomputation) {
	in.Tokens.AssertRank(2)
	d, a := f.Config.design(), f.attention(in)
	r := &Recomputation{}
	x := r.add(nil, func(*Node) *Node { return f.embed(d, in) })
	for l := range d.layers {
		x = r.add(x, func(x *Node) *Node {
			y, _ := f.block(&d.layers[l], a, f.Config.layerName(l), x, nil)
			return y
		})
	}
	r.hidden = Identity(StopGradient(r.add(x, func(x *Node) *Node { return d.norm.build(f, x, f.Config.root()) })))
	return r.hidden, r
}

func (r *Recomputation) add(x *Node, build func(x *Node) *Node) *Node {
	r.stages = append(r.stages, stage{x, build})
	return build(x)
}

// Gradient builds the gradients of a loss, a scalar that is built on the hidden states, as GoMLX's Gradient does.
func (r *Recomputation) Gradient(loss *Node, trained ...*Node) []*Node {
	sums := make([]*Node, len(trained))
	v := pull(loss, r.hidden, trained, sums)
	for _, s := range slices.Backward(r.stages) {
		var x *Node
		if s.in != nil {
			x = SchedulingBarrier(StopGradient(s.in), v) // not before its turn
		}
		v = pull(ReduceAllSum(Mul(s.build(x), StopGradient(v))), x, trained, sums)
	}
	for i, x := range trained {
		if sums[i] == nil {
			sums[i] = ZerosLike(x)
		}
	}
	return sums
}

// pull builds the gradient of y with respect to x, which may be nil, and adds those of the trained nodes that y depends
// on by other ways than through x to sums.
func pull(y, x *Node, trained, sums []*Node) *Node {
	reached := map[*Node]bool{x: true}
	reach(y, reached)
	var at []int
	var to []*Node
	for i, p := range trained {
		if reached[p] {
			at, to = append(at, i), append(to, p)
		}
	}
	if x != nil {
		to = append(to, x)
	}
	if len(to) == 0 {
		return nil
	}
	list := Gradient(y, to...)
	for k, i := range at {
		if sums[i] == nil {
			sums[i] = list[k]
		} else {
			sums[i] = Add(sums[i], list[k])
		}
	}
	if x == nil {
		return nil
	}
	return list[len(at)]
}

// reach marks the nodes that the gradient of y may reach. It does not go on from those that are marked.
func reach(y *Node, reached map[*Node]bool) {
	if reached[y] || y.StopGradient() {
		return
	}
	reached[y] = true
	for _, in := range y.Inputs() {
		reach(in, reached)
	}
}
