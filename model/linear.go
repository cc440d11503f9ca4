package model

import . "github.com/gomlx/gomlx/core/graph"

// Shape legend: see forward.go.

// linear is a linear layer, x Wᵀ + b. The zero value is none.
type linear struct {
	name, file string // within a layer: "self_attn.q_proj", and llama.cpp's "attn_q"
	in, out    int
	bias       bool
	heads      int  // rotated heads that its rows are of; 0: none
	joins      bool // it writes into the residual stream
	frozen     bool // no adapter attaches
}

// build applies the layer to x [B, T, in]. Rows are flattened first: devices are fastest at a matmul of two matrices.
// at precedes its name.
func (l linear) build(f *Forward, x *Node, at string) *Node {
	b, t := x.Shape().Dim(0), x.Shape().Dim(1)
	name := at + l.name
	base := func(x *Node) *Node {
		y := matMulTransposed(x, f.matrix(name+weightSuffix))
		if l.bias {
			y = Add(y, ExpandLeftToRank(f.Param(name+biasSuffix), 2))
		}
		return y
	}
	x = Reshape(x, b*t, -1)
	if l.frozen {
		x = base(x)
	} else {
		x = f.adapted(x, name, base)
	}
	return Reshape(x, b, t, -1)
}

// mlp is a gated linear unit (Shazeer 2020): down(activation(gate(x)) * up(x)).
type mlp struct {
	gate, up, down linear // without up, gate has its rows behind its own
	activation     string // a key of activations
}

func (m mlp) build(f *Forward, x *Node, at string) *Node {
	gate := m.gate.build(f, x, at)
	if m.up.name == "" {
		half := m.gate.out / 2
		y := gated(activations[m.activation], columns(gate, 0, half), columns(gate, half, half))
		return m.down.build(f, y, at)
	}
	up := m.up.build(f, x, at)
	return m.down.build(f, gated(activations[m.activation], gate, up), at)
}

func (m mlp) list(l *tensorList, at place) {
	l.linear(at, m.gate)
	l.linear(at, m.up)
	l.linear(at, m.down)
}

// mlp returns that of a layer: gate, up and down, with biases if configured.
func (c *Config) mlp() mlp {
	m := mlp{
		gate: linear{name: "mlp.gate_proj", file: "ffn_gate", in: c.HiddenSize, out: c.IntermediateSize, bias: c.MLPBias},
		down: linear{name: "mlp.down_proj", file: "ffn_down", in: c.IntermediateSize, out: c.HiddenSize, bias: c.MLPBias,
			joins: true},
		activation: c.HiddenAct,
	}
	m.up = m.gate
	m.up.name, m.up.file = "mlp.up_proj", "ffn_up"
	return m
}

// frozen is m without adapters.
func (m mlp) frozen() mlp {
	m.gate.frozen, m.up.frozen, m.down.frozen = true, true, true
	return m
}

// fused has gate and up in one matrix.
func (m mlp) fused(gateUp, down string, inner int) mlp {
	m.gate.name, m.gate.file, m.gate.out = gateUp, "", 2*inner
	m.up = linear{}
	m.down.name, m.down.in = down, inner
	return m
}

// columns builds n of the last axis, from the first on.
func columns(x *Node, first, n int) *Node {
	return Slice(x, AxisRange().Spacer(), AxisRange(first, first+n))
}
