package compile

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// call adds a unit of an operation that is called by name, and returns its first result, or returns a further one. Each
// has memory, also where nobody reads it.
//
//	before: o = Call gated_delta_rule(q, k, v, ...); s = result 1 of o
//	after:  deltarule{q, k, v, ...} -> o, s
func (c *compiler) call(n *ir.Node, in []ir.View) ir.View {
	if at, ok := n.Attr.(ir.ResultAttr); ok {
		return ir.Whole(c.writer(in[0].Of).step.Writes()[at.Number], n.Shape.Dimensions)
	}
	at := n.Attr.(ir.CallAttr)
	u := &unit{last: n.ID, reads: make([]ir.View, len(in))}
	for i, v := range in {
		if states := i == 6 || i == 8 && at.Name == ir.DeltaRuleGradientName; !inRows(v, states) {
			v = c.copy(v, n.In[i].Shape, n.ID)
		}
		u.reads[i] = v
		c.waitFor(u, u.reads[i])
	}
	results := make([]ir.View, len(at.Results))
	for i, s := range at.Results {
		t := c.tensor(s)
		c.writes(u, t)
		c.lives[t.ID].outside = true
		results[i] = ir.Whole(t, s.Dimensions)
	}
	u.step = newDelta(at.Name, results, u.reads)
	c.add(u)
	return results[0]
}

// inRows reports whether the elements of a head lie together, or of states all of them.
func inRows(v ir.View, states bool) bool {
	last := len(v.Dims) - 1
	return last < 3 || v.Contiguous() || !states && (v.Strides[last] == 1 || v.Dims[last] == 1)
}

// newDelta returns the step of an operation of the gated delta rule.
func newDelta(name string, results, in []ir.View) ir.Step {
	tokens := ir.DeltaTokens{
		Query: in[0], Key: in[1], Value: in[2], Decay: in[3], Rate: in[4], Count: in[5], State: in[6],
	}
	if name == ir.DeltaRuleGradientName {
		return &ir.DeltaGradient{Tokens: tokens, Output: in[7], Next: in[8], Results: results, In: in}
	}
	s := &ir.DeltaRule{
		Update: ir.Update{Result: ir.Result{Out: results[1]}, Operand: in[6].Collapse(), Others: in[:6]},
		Tokens: tokens, Output: results[0], Slots: len(in) > 7,
	}
	if s.Slots {
		s.From, s.To = in[7], in[8]
		s.Others = append(s.Others[:6:6], s.From, s.To)
	}
	return s
}
