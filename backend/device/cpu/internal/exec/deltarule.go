package exec

import (
	"fmt"

	"github.com/goart-dev/art/backend/device/cpu/internal/deltarule"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// deltaRow returns a head of a row of tokens, without states and output.
func (r *run) deltaRow(d *ir.DeltaTokens, row, head int) deltarule.Row {
	dims := d.Value.Dims
	group := head * d.Key.Dims[2] / dims[2]
	at := func(v ir.View, head int) []float32 {
		off := v.Off + row*v.Strides[0] + head*v.Strides[2]
		return memory.Slice[float32](r.ptr(v, off), v.Of.Count-off)
	}
	return deltarule.Row{
		Tokens: min(max(r.integerAt(d.Count, row), 0), dims[1]), Keys: d.Key.Dims[3], Values: dims[3],
		Query: at(d.Query, group), QueryStep: d.Query.Strides[1], Key: at(d.Key, group), KeyStep: d.Key.Strides[1],
		Value: at(d.Value, head), ValueStep: d.Value.Strides[1],
		Decay: at(d.Decay, head), DecayStep: d.Decay.Strides[1],
		Rate: at(d.Rate, head), RateStep: d.Rate.Strides[1],
	}
}

// integerAt is element i of a view [n].
func (r *run) integerAt(v ir.View, i int) int {
	return integer(r.ptr(v, v.Off+i*v.Strides[0]), v.Of.DType)
}

// state is the state of a head in states [n, H, K, V]: element i of the first axis.
func (r *run) state(v ir.View, i, head int) []float32 {
	each := v.Dims[2] * v.Dims[3]
	return memory.Slice[float32](r.ptr(v, v.Off+(i*v.Dims[1]+head)*each), each)
}

// slot is the slot of a row. One that there is not is an error of the caller, and would be one of memory.
func (r *run) slot(v ir.View, row, slots int) int {
	i := r.integerAt(v, row)
	if i < 0 || i >= slots {
		panic(fmt.Sprintf("gated delta rule: slot %d of %d states", i, slots))
	}
	return i
}

// deltaRule computes a part of the columns of a head at a time.
func (r *run) deltaRule(s *ir.DeltaRule) {
	if s.Slots {
		r.copyOperand(&s.Update)
	}
	dims := s.Tokens.Value.Dims
	blocks := ir.CeilDiv(dims[3], deltarule.Columns)
	r.Pool.For(dims[0]*dims[2]*blocks, func(i int) {
		b, h, column := i/blocks/dims[2], i/blocks%dims[2], i%blocks*deltarule.Columns
		row := r.deltaRow(&s.Tokens, b, h)
		off := s.Output.Off + b*s.Output.Strides[0] + h*s.Output.Strides[2]
		row.Output, row.OutputStep = memory.Slice[float32](r.ptr(s.Output, off), s.Output.Of.Count-off), s.Output.Strides[1]
		for t := row.Tokens; t < dims[1]; t++ {
			clear(row.Output[t*row.OutputStep+column:][:min(deltarule.Columns, dims[3]-column)])
		}
		if !r.setStates(s, &row, b, h) {
			return
		}
		space := r.Memory.Alloc(4 * deltarule.Scratch(row.Keys))
		defer r.Memory.Release(space)
		deltarule.Forward(r.Level, &row, column, memory.Slice[float32](space.Base, deltarule.Scratch(row.Keys)))
	})
}

// setStates says where the state of a head of a row is, and where it goes. It reports false for a row without tokens
// that keeps its slot: several such rows may have the same one.
func (r *run) setStates(s *ir.DeltaRule, row *deltarule.Row, b, h int) bool {
	next := s.Out
	if s.Slots {
		from, to := r.slot(s.From, b, next.Dims[0]), r.slot(s.To, b, next.Dims[0])
		row.State, row.Next = r.state(next, from, h), r.state(next, to, h)
		return row.Tokens > 0 || from != to
	}
	row.Next = r.state(next, b, h)
	if !s.Tokens.Zeros() {
		row.State = r.state(s.Tokens.State, b, h)
	}
	return true
}

// deltaGradient computes the gradients of a head at a time.
func (r *run) deltaGradient(s *ir.DeltaGradient) {
	dims, keys := s.Tokens.Value.Dims, s.Tokens.Key.Dims[3]
	for _, v := range s.Results { // those of padding
		clear(memory.Slice[float32](r.ptr(v, 0), v.Of.Count))
	}
	r.Pool.For(dims[0]*dims[2], func(i int) {
		b, h := i/dims[2], i%dims[2]
		at := func(v ir.View) []float32 {
			off := v.Off + b*v.Strides[0] + h*v.Strides[2]
			return memory.Slice[float32](r.ptr(v, off), v.Of.Count-off)
		}
		row, of := r.deltaRow(&s.Tokens, b, h), s.Results
		g := deltarule.Gradient{
			Output: at(s.Output), OutputStep: s.Output.Strides[1],
			Query: at(of[0]), Key: at(of[1]), KeyStep: of[0].Strides[1], Value: at(of[2]), ValueStep: of[2].Strides[1],
			LogDecay: at(of[3]), Rate: at(of[4]), RateStep: of[3].Strides[1], State: r.state(of[5], b, h),
		}
		if len(s.Next.Dims) > 0 {
			g.Next = r.state(s.Next, b, h)
		}
		if !s.Tokens.Zeros() {
			row.State = r.state(s.Tokens.State, b, h)
		}
		n := deltarule.GradientScratch(dims[1], keys, dims[3])
		space := r.Memory.Alloc(4 * n)
		defer r.Memory.Release(space)
		deltarule.Backward(r.Level, r.Kernels, row, &g, memory.Slice[float32](space.Base, n))
	})
}

// deltaWork is the work of the gated delta rule: four multiply-adds for each element of a state and token.
func deltaWork(d *ir.DeltaTokens) int { return 4 * ir.Volume(d.Value.Dims) * d.Key.Dims[3] }
