package cpu

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// sinking is a normalisation, a matmul of what it gives, and a loop after that, which reads a quotient that is known
// before.
type sinking struct {
	name           string
	operand        bool // the last loop reads what the quotient is made of
	before, output bool // the first loop reads the quotient; it is an output
	sinks          bool // to the last loop
}

const sinkingRows, sinkingColumns = 40, 24

func (s sinking) build(t *testing.T, f compute.Function) (out []compute.Value) {
	matrix := shapes.Make(dtypes.Float32, sinkingRows, sinkingColumns)
	weights := must(f.Parameter("w", shapes.Make(dtypes.Float32, sinkingColumns, sinkingColumns), nil))(t)
	x := must(f.Tanh(must(f.Parameter("x", matrix, nil))(t)))(t)
	sum := must(f.ReduceSum(must(f.Mul(x, x))(t), 1))(t)
	norm := must(f.BroadcastInDim(must(f.Sqrt(sum))(t), matrix, []int{0}))(t)
	unit := must(f.Div(x, norm))(t)
	quotient := must(f.Div(x, must(f.Mul(norm, norm))(t)))(t)
	if s.before {
		unit = must(f.Add(unit, quotient))(t)
	}
	matmul := must(f.DotGeneral(unit, []int{1}, nil, weights, []int{0}, nil, compute.DotGeneralConfig{}))(t)
	late := must(f.Mul(must(f.Sin(matmul))(t), quotient))(t)
	if s.operand {
		late = must(f.Add(late, x))(t)
	}
	if s.output {
		out = append(out, quotient)
	}
	return append(out, late)
}

// run returns the outputs for some inputs, and the plan of the graph.
func (s sinking) run(t *testing.T, d *Device, x, w []float32) (out []float32, p *ir.Plan) {
	b := newBuilder(d, s.name)
	must(0, b.Main().Return(s.build(t, b.Main()), nil))(t)
	e := must(b.Compile())(t).(*executable)
	in := make([]compute.Buffer, 2)
	for i, data := range [][]float32{w, x} {
		in[i] = must(d.BufferFromFlatData(0, data, shapes.Make(dtypes.Float32, len(data)/sinkingColumns, sinkingColumns)))(t)
	}
	for _, o := range must(e.Execute(in, nil, 0))(t) {
		out = append(out, floatsOf(t, o)...)
	}
	return out, e.plan
}

// TestSink: what only a later loop reads is computed there, if that reads the operands too. And what is the same for
// all of a row is computed once.
func TestSink(t *testing.T) {
	rng := seeded(t)
	for _, s := range []sinking{
		{"it sinks", true, false, false, true},
		{"its operand would be read for it", false, false, false, false},
		{"its loop reads it too", true, true, false, false},
		{"it is an output", true, false, true, false},
	} {
		x, w := make([]float32, sinkingRows*sinkingColumns), make([]float32, sinkingColumns*sinkingColumns)
		for _, list := range [][]float32{x, w} {
			for i := range list {
				list[i] = float32(rng.NormFloat64())
			}
		}
		plain := newDevice(t, 1)
		plain.unfused = true
		want, _ := s.run(t, plain, x, w)
		got, p := s.run(t, newDevice(t, 2), x, w)
		if !slices.Equal(got, want) {
			t.Errorf("%s: not the same numbers", s.name)
		}
		of := map[compute.OpType]*ir.Loop{} // of the last operation of a kind
		squares := 0
		for _, step := range p.Steps {
			l := ir.LoopOf(step)
			if l == nil {
				continue
			}
			for _, m := range l.Fused {
				of[m.Op] = l
				if m.Op == compute.OpTypeMul && m.Out.Count == sinkingRows {
					squares++
				}
			}
		}
		if sinks := of[compute.OpTypeDiv] == of[compute.OpTypeSin]; sinks != s.sinks || squares != 1 {
			t.Errorf("%s: it sinks: %v; %d squares of rows", s.name, sinks, squares)
		}
	}
}
