package cpu

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// step is a part of a plan, which runs on all workers at once. It is data; package exec knows how each type is run.
type step interface {
	reads() []view
	writes() []*tensor
}

// result is that of a step of one operation.
type result struct{ out view }

// writes is the result.
func (s result) writes() []*tensor { return []*tensor{s.out.of} }

// move copies elements from offsets to offsets: the same walk over axes, with strides of its own on each side.
type move struct {
	size           int // bytes of an element
	dims, to, from []int
}

// newMove merges the axes of two views of the same dimensions where both allow it. The last axis is walked innermost.
func newMove(to, from view) move {
	m := move{size: to.of.size}
	for i, d := range to.dims {
		if d == 1 {
			continue
		}
		k := len(m.dims) - 1
		if k >= 0 && m.to[k] == d*to.strides[i] && m.from[k] == d*from.strides[i] {
			m.dims[k] *= d
			m.to[k], m.from[k] = to.strides[i], from.strides[i]
			continue
		}
		m.dims, m.to, m.from = append(m.dims, d), append(m.to, to.strides[i]), append(m.from, from.strides[i])
	}
	if len(m.dims) == 0 {
		m.dims, m.to, m.from = []int{1}, []int{1}, []int{1}
	}
	return m
}

// copyStep writes the elements of a view in row-major order.
type copyStep struct {
	result
	from   view      // collapsed
	kernel *vec.Copy // for elements of four bytes, which have kernels that transpose; or nil
}

func (s *copyStep) reads() []view { return []view{s.from} }

// concatStep copies parts of operands to the result.
type concatStep struct {
	result
	in    []view
	parts []concatPart
}

// concatPart is a part of an operand, and where it goes.
type concatPart struct {
	move     move
	to, from view
}

func (s *concatStep) reads() []view { return s.in }

// padStep fills the result and copies what is left of the operand over it.
type padStep struct {
	result
	with     view // one element
	to, from view
	move     move
}

func (s *padStep) reads() []view { return []view{s.from, s.with} }

// iotaStep counts from 0 along an axis.
type iotaStep struct {
	result
	axis int
}

func (s *iotaStep) reads() []view { return nil }

// argMinMaxStep finds the index of the least or greatest element of an axis.
type argMinMaxStep struct {
	result
	x       view
	axis    int
	isMin   bool
	offsets []int // of the first element of each
}

func (s *argMinMaxStep) reads() []view { return []view{s.x} }

// cumSumStep sums along an axis, and keeps the sums on the way.
type cumSumStep struct {
	result
	x        view
	axis     int
	options  compute.CumSumOptions
	to, from []int // offsets of the first element of each sum, in the result and in x
}

func (s *cumSumStep) reads() []view { return []view{s.x} }

// fillStep fills the result with the identity of a reduction: nothing is reduced.
type fillStep struct {
	result
	op compute.OpType
}

func (s *fillStep) reads() []view { return nil }

// reduceColumnsStep reduces all axes but some: each row of the last kept axis is combined with the result, in order. More
// than a block of rows are reduced block by block, as the contracted axis of a matmul is, so that long sums keep their
// accuracy.
type reduceColumnsStep struct {
	result
	op            compute.OpType
	x             view
	groups, rows  []int // offsets of the groups of rows, and of the rows in a group
	width, stride int   // of a row
}

func (s *reduceColumnsStep) reads() []view { return []view{s.x} }

// reduceRowStep reduces pieces of a contiguous row, each to an element of the result.
type reduceRowStep struct {
	result
	op    compute.OpType
	x     view
	count int // elements of the row
	each  int // elements of a piece
}

func (s *reduceRowStep) reads() []view { return []view{s.x} }

// indexing is how gather and scatter find their positions: an index vector for each batch element, whose components are
// positions on axes of the operand.
type indexing struct {
	indices   view  // of the first component of each vector
	stride    int   // between components
	axes      []int // of the operand, one for each component
	batch     []int // dimensions of the batch
	component int   // number of components
}

// gatherStep copies a window of the operand for each index vector.
type gatherStep struct {
	result
	operand  view
	index    indexing
	from, to []int // offsets of the index vectors, and of the windows in the result
	size     []int // of a window
	window   move
	rows     bool // the windows are rows of a matrix, which follow one another in the result
	members  bool // the windows are members of the first axis of a row-major operand
}

func (s *gatherStep) reads() []view { return []view{s.operand, s.index.indices} }

// widens reports whether rows of bfloat16 become float32.
func (s *gatherStep) widens() bool { return s.operand.of.kind != s.out.of.kind }

// update is the part of a step that writes into a copy of its operand, or into the operand itself.
type update struct {
	result
	operand view   // collapsed
	others  []view // what is read besides
}

func (s *update) reads() []view { return append([]view{s.operand}, s.others...) }

// scatterStep combines a window of the operand with each update, in the order of the updates.
type scatterStep struct {
	update
	op       compute.OpType
	index    indexing
	updates  view
	size     []int // of a window
	from, at []int // offsets of the index vectors, and of the updates
	runs     runs
}

// runs are the pieces of two windows of one shape in which the elements of both are contiguous.
type runs struct {
	to, from []int // where they begin
	n        int   // elements of each
}

// newRuns cuts windows into runs.
func newRuns(to, from view) runs {
	a, b := to.collapse(), from.collapse()
	if len(a.dims) == 1 && len(b.dims) == 1 && a.strides[0] == 1 && b.strides[0] == 1 {
		return runs{[]int{0}, []int{0}, a.dims[0]}
	}
	n, last := 1, len(to.dims)-1
	if last >= 0 && to.strides[last] == 1 && from.strides[last] == 1 { // a row at once
		n = to.dims[last]
		to.dims, to.strides = to.dims[:last], to.strides[:last]
		from.dims, from.strides = from.dims[:last], from.strides[:last]
	}
	return runs{to.offsets(), from.offsets(), n}
}

// dynamicSliceStep copies a region whose start is computed.
type dynamicSliceStep struct {
	result
	x      view
	starts []view // scalars
}

func (s *dynamicSliceStep) reads() []view { return append([]view{s.x}, s.starts...) }

// dynamicUpdateStep replaces a region whose start is computed.
type dynamicUpdateStep struct {
	update
	with   view
	starts []view // scalars
	move   move
}

// isUpdate returns the part of a step that says what it updates, or nil.
func isUpdate(s step) *update {
	switch s := s.(type) {
	case *scatterStep:
		return &s.update
	case *dynamicUpdateStep:
		return &s.update
	}
	return nil
}

// loopOf returns the loop that a step runs, or nil.
func loopOf(s step) *loop {
	switch s := s.(type) {
	case *loop:
		return s
	case *attention:
		return s.loop
	}
	return nil
}

// matmulsOf returns the matmuls that a step runs.
func matmulsOf(s step) []*matmul {
	switch s := s.(type) {
	case *matmul:
		return []*matmul{s}
	case *sparseMatmul:
		return []*matmul{s.matmul}
	case *attention:
		return slices.DeleteFunc([]*matmul{s.first, s.second}, func(m *matmul) bool { return m == nil })
	}
	return nil
}
