package cpu

import "github.com/goart-dev/art/backend/device/cpu/internal/gemm"

// matmul is a product of matrices [rows, inner] and [inner, columns], for each element of a batch.
type matmul struct {
	out      view
	a, b     operand
	inner    int         // length of the contracted axis
	batch    []gemm.Axis // axes of the batch
	gathered *gathered   // of fused attention: the right operand, where it is

	bf16          bool // the right operand is a matrix of bfloat16, which is widened in parts
	contractsRows bool // the rows of that are contracted rather than its columns
}

// operand is an operand of a matmul: a matrix for each element of the batch.
type operand struct {
	v          view  // what is read, with the axes of the batch in front
	batch      []int // strides of the axes of the batch
	rows       int   // elements of the axes that are kept
	row, inner int   // strides of rows, and of the contracted axes
}

// gathered says that the right operand of a matmul is gathered: the members of the first axis of the batch are those of
// another tensor, at given positions. Fused attention reads them where they are, so that an attention of some sequences of
// a cache copies none.
type gathered struct {
	by     *gatherStep
	member int // elements of a member
}

// reads are the operands.
func (m *matmul) reads() []view { return append([]view{m.a.v}, m.right()...) }

// writes is the result.
func (m *matmul) writes() []*tensor { return []*tensor{m.out.of} }

// right are the views that hold the right operand.
func (m *matmul) right() []view {
	if m.gathered != nil {
		return m.gathered.by.reads()
	}
	return []view{m.b.v}
}

// members is the size of the batch.
func (m *matmul) members() int {
	n := 1
	for _, a := range m.batch {
		n *= a.N
	}
	return n
}

// offsets returns where the operands of a member of the batch begin.
func (m *matmul) offsets(member int) (a, b int) {
	for i := len(m.batch) - 1; i >= 0; i-- {
		at := member % m.batch[i].N
		member /= m.batch[i].N
		a, b = a+at*m.batch[i].A, b+at*m.batch[i].B
	}
	return a, b
}

// sparseMatmul is a matmul over the rows of what fused attention with a mask made, such as those of the gradients of keys
// and values. For some columns at once, it leaves out the rows in which they are all zero: those of a causal mask are half
// of them. It goes through the fixed blocks of the contracted axis, and multiplies from the first to the last row of each
// that is not zero. As in fused attention, that changes no bit.
type sparseMatmul struct {
	matmul *matmul
	right  bool // the operand of zeros is the right one
}

// reads are the operands.
func (s *sparseMatmul) reads() []view { return s.matmul.reads() }

// writes is the result.
func (s *sparseMatmul) writes() []*tensor { return s.matmul.writes() }

// zeros is the operand of zeros.
func (s *sparseMatmul) zeros() operand {
	if s.right {
		return s.matmul.b
	}
	return s.matmul.a
}
