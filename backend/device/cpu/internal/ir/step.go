package ir

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// Step is a part of a plan, which runs on all workers at once. It is data; package exec knows how each type is run.
type Step interface {
	Reads() []View
	Writes() []*Tensor
}

// Result is that of a step of one operation.
type Result struct{ Out View }

// Writes is the result.
func (s Result) Writes() []*Tensor { return []*Tensor{s.Out.Of} }

// Move copies elements from offsets to offsets: the same walk over axes, with strides of its own on each side.
type Move struct {
	Size           int // bytes of an element
	Dims, To, From []int
}

// NewMove merges the axes of two views of the same dimensions where both allow it. The last axis is walked innermost.
func NewMove(to, from View) Move {
	m := Move{Size: to.Of.Size}
	for i, d := range to.Dims {
		if d == 1 {
			continue
		}
		k := len(m.Dims) - 1
		if k >= 0 && m.To[k] == d*to.Strides[i] && m.From[k] == d*from.Strides[i] {
			m.Dims[k] *= d
			m.To[k], m.From[k] = to.Strides[i], from.Strides[i]
			continue
		}
		m.Dims, m.To, m.From = append(m.Dims, d), append(m.To, to.Strides[i]), append(m.From, from.Strides[i])
	}
	if len(m.Dims) == 0 {
		m.Dims, m.To, m.From = []int{1}, []int{1}, []int{1}
	}
	return m
}

// Copy writes the elements of a view in row-major order.
type Copy struct {
	Result
	From   View      // collapsed
	Kernel *vec.Copy // for elements of four bytes, which have kernels that transpose; or nil
}

// Reads are the operands.
func (s *Copy) Reads() []View { return []View{s.From} }

// Concat copies parts of operands to the result.
type Concat struct {
	Result
	In    []View
	Parts []ConcatPart
}

// ConcatPart is a part of an operand, and where it goes.
type ConcatPart struct {
	Move     Move
	To, From View
}

// Reads are the operands.
func (s *Concat) Reads() []View { return s.In }

// Pad fills the result and copies what is left of the operand over it.
type Pad struct {
	Result
	With     View // one element
	To, From View
	Move     Move
}

// Reads are the operands.
func (s *Pad) Reads() []View { return []View{s.From, s.With} }

// Iota counts from 0 along an axis.
type Iota struct {
	Result
	Axis int
}

// Reads are none.
func (s *Iota) Reads() []View { return nil }

// ArgMinMax finds the index of the least or greatest element of an axis.
type ArgMinMax struct {
	Result
	X       View
	Axis    int
	IsMin   bool
	Offsets Offsets // of the first element of each
}

// Reads are the operands.
func (s *ArgMinMax) Reads() []View { return []View{s.X} }

// CumSum sums along an axis, and keeps the sums on the way.
type CumSum struct {
	Result
	X        View
	Axis     int
	Options  compute.CumSumOptions
	To, From Offsets // offsets of the first element of each sum, in the result and in x
}

// Reads are the operands.
func (s *CumSum) Reads() []View { return []View{s.X} }

// Fill fills the result with the identity of a reduction: nothing is reduced.
type Fill struct {
	Result
	Op compute.OpType
}

// Reads are none.
func (s *Fill) Reads() []View { return nil }

// ReduceColumns reduces all axes but some: each row of the last kept axis is combined with the result, in order. More
// than a block of rows are reduced block by block, as the contracted axis of a matmul is, so that long sums keep their
// accuracy.
type ReduceColumns struct {
	Result
	Op            compute.OpType
	X             View
	Groups, Rows  Offsets // of the groups of rows, and of the rows in a group
	Width, Stride int     // of a row
}

// Reads are the operands.
func (s *ReduceColumns) Reads() []View { return []View{s.X} }

// ReduceRow reduces pieces of a contiguous row, each to an element of the result.
type ReduceRow struct {
	Result
	Op    compute.OpType
	X     View
	Count int // elements of the row
	Each  int // elements of a piece
}

// Reads are the operands.
func (s *ReduceRow) Reads() []View { return []View{s.X} }

// Indexing is how gather and scatter find their positions: an index vector for each batch element, whose components are
// positions on axes of the operand.
type Indexing struct {
	Indices   View  // of the first component of each vector
	Stride    int   // between components
	Axes      []int // of the operand, one for each component
	Batch     []int // dimensions of the batch
	Component int   // number of components
}

// Gather copies a window of the operand for each index vector.
type Gather struct {
	Result
	Operand  View
	Index    Indexing
	From, To Offsets // of the index vectors, and of the windows in the result
	Size     []int   // of a window
	Window   Move
	Rows     bool // the windows are rows of a matrix, which follow one another in the result
	Members  bool // the windows are members of the first axis of a row-major operand
}

// Reads are the operands.
func (s *Gather) Reads() []View { return []View{s.Operand, s.Index.Indices} }

// Widens reports whether rows of bfloat16 become float32.
func (s *Gather) Widens() bool { return s.Operand.Of.DType != s.Out.Of.DType }

// Update is the part of a step that writes into a copy of its operand, or into the operand itself.
type Update struct {
	Result
	Operand View   // collapsed
	Others  []View // what is read besides
}

// Reads are the operands.
func (s *Update) Reads() []View { return append([]View{s.Operand}, s.Others...) }

// Scatter combines a window of the operand with each update, in the order of the updates.
type Scatter struct {
	Update
	Op       compute.OpType
	Replaces bool // windows are replaced by updates
	Index    Indexing
	Updates  View
	Size     []int   // of a window
	From, At Offsets // of the index vectors, and of the updates
	Runs     Runs
}

// Runs are the pieces of two windows of one shape in which the elements of both are contiguous.
type Runs struct {
	To, From []int // where they begin
	N        int   // elements of each
}

// NewRuns cuts windows into runs.
func NewRuns(to, from View) Runs {
	a, b := to.Collapse(), from.Collapse()
	if len(a.Dims) == 1 && len(b.Dims) == 1 && a.Strides[0] == 1 && b.Strides[0] == 1 {
		return Runs{[]int{0}, []int{0}, a.Dims[0]}
	}
	n, last := 1, len(to.Dims)-1
	if last >= 0 && to.Strides[last] == 1 && from.Strides[last] == 1 { // a row at once
		n = to.Dims[last]
		to.Dims, to.Strides = to.Dims[:last], to.Strides[:last]
		from.Dims, from.Strides = from.Dims[:last], from.Strides[:last]
	}
	return Runs{to.Offsets(), from.Offsets(), n}
}

// DynamicSlice copies a region whose start is computed.
type DynamicSlice struct {
	Result
	X      View
	Starts []View // scalars
}

// Reads are the operands.
func (s *DynamicSlice) Reads() []View { return append([]View{s.X}, s.Starts...) }

// DynamicUpdate replaces a region whose start is computed.
type DynamicUpdate struct {
	Update
	With   View
	Starts []View // scalars
	Move   Move
}

// UpdateOf returns the part of a step that says what it updates, or nil.
func UpdateOf(s Step) *Update {
	switch s := s.(type) {
	case *Scatter:
		return &s.Update
	case *DynamicUpdate:
		return &s.Update
	case *DeltaRule:
		if s.Slots {
			return &s.Update
		}
	}
	return nil
}

// LoopOf returns the loop that a step runs, or nil.
func LoopOf(s Step) *Loop {
	switch s := s.(type) {
	case *Loop:
		return s
	case *Attention:
		return s.Loop
	}
	return nil
}

// MatmulsOf returns the matmuls that a step runs.
func MatmulsOf(s Step) []*Matmul {
	switch s := s.(type) {
	case *Matmul:
		return []*Matmul{s}
	case *SparseMatmul:
		return []*Matmul{s.Matmul}
	case *Attention:
		return slices.DeleteFunc([]*Matmul{s.First, s.Second}, func(m *Matmul) bool { return m == nil })
	}
	return nil
}
