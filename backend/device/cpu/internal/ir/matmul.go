package ir

import "github.com/goart-dev/art/backend/device/cpu/internal/gemm"

// Matmul is a product of matrices [rows, inner] and [inner, columns], for each element of a batch.
type Matmul struct {
	Out      View
	A, B     Operand
	Inner    int         // length of the contracted axis
	Batch    []gemm.Axis // axes of the batch
	Gathered *Gathered   // of fused attention: the right operand, where it is

	BF16          bool // the right operand is a matrix of bfloat16, which is widened in parts
	ContractsRows bool // the rows of that are contracted rather than its columns
}

// Operand is an operand of a matmul: a matrix for each element of the batch.
type Operand struct {
	View       View  // what is read, with the axes of the batch in front
	Batch      []int // strides of the axes of the batch
	Rows       int   // elements of the axes that are kept
	Row, Inner int   // strides of rows, and of the contracted axes
}

// Gathered says that the right operand of a matmul is gathered: it is members of the first axis of another tensor, its
// pages, at given positions. Fused attention reads them where they are, so that an attention to some pages of a cache
// copies none. A page holds the matrices of several members of the batch, or a matrix has several pages: each some of
// the columns of the first matmul, or of the contracted axis of the second.
type Gathered struct {
	By   *Gather
	Page int // elements of a page
	Step int // elements from a column, or a row of the contracted axis, to the next
	Each int // columns or rows of a page; all of a matrix that lies in one page
}

// Reads are the operands.
func (m *Matmul) Reads() []View { return append([]View{m.A.View}, m.right()...) }

// Writes is the result.
func (m *Matmul) Writes() []*Tensor { return []*Tensor{m.Out.Of} }

// right are the views that hold the right operand.
func (m *Matmul) right() []View {
	if m.Gathered != nil {
		return m.Gathered.By.Reads()
	}
	return []View{m.B.View}
}

// Members is the size of the batch.
func (m *Matmul) Members() int {
	n := 1
	for _, a := range m.Batch {
		n *= a.N
	}
	return n
}

// Offsets returns where the operands of a member of the batch begin.
func (m *Matmul) Offsets(member int) (a, b int) {
	for i := len(m.Batch) - 1; i >= 0; i-- {
		at := member % m.Batch[i].N
		member /= m.Batch[i].N
		a, b = a+at*m.Batch[i].A, b+at*m.Batch[i].B
	}
	return a, b
}

// SparseMatmul is a matmul over the rows of what fused attention with a mask made, such as those of the gradients of
// keys and values. For some columns at once, it leaves out the rows in which they are all zero: those of a causal mask
// are half of them. It goes through the fixed blocks of the contracted axis, and multiplies from the first to the last
// row of each that is not zero. As in fused attention, that changes no bit.
type SparseMatmul struct {
	Matmul *Matmul
	Right  bool // the operand of zeros is the right one
}

// Reads are the operands.
func (s *SparseMatmul) Reads() []View { return s.Matmul.Reads() }

// Writes is the result.
func (s *SparseMatmul) Writes() []*Tensor { return s.Matmul.Writes() }

// Zeros is the operand of zeros.
func (s *SparseMatmul) Zeros() Operand {
	if s.Right {
		return s.Matmul.B
	}
	return s.Matmul.A
}
