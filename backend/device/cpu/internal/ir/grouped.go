package ir

// Grouped is a matmul in which each row has a matrix of its own out of several, such as those of the experts of a
// layer: row i of x [rows, inner] times matrix ids[i]. The rows of one matrix are multiplied together, and a matrix
// that no row has is not read.
type Grouped struct {
	Result
	Grouping
	Matrices   []View // each [columns, inner], or [inner, columns] where rows are contracted
	Transposed bool   // rows are contracted
}

// Reads are the operands.
func (s *Grouped) Reads() []View { return append([]View{s.X.View, s.IDs.View}, s.Matrices...) }

// GroupedOuter is the gradient of the matrices of a [Grouped]: each is the sum of yᵀx over its rows, x of [rows,
// columns] and y of [rows, height]. Its contracted axis, the rows of a matrix in their order, has the fixed blocks of
// matmuls.
type GroupedOuter struct {
	Result
	Grouping
	Y Rows
}

// Reads are the operands.
func (s *GroupedOuter) Reads() []View { return []View{s.X.View, s.IDs.View, s.Y.View} }

// Grouping says which of several matrices each row has. Rows are copied, those of a matrix one after another, some of
// them at once.
type Grouping struct {
	X, IDs Rows    // IDs are rows of one number
	Count  int     // rows
	Chunk  int     // of them that are copied at once: fixed blocks, or all
	Space  *Tensor // memory for them, of X, and of the result or Y
}

// Rows are rows of numbers that lie one after another.
type Rows struct {
	View  View
	At    Offsets // of the first number of each
	Width int
}

// NewRows returns the rows along the last axis of a view.
func NewRows(v View) Rows {
	last := len(v.Dims) - 1
	return Rows{View: v, At: NewOffsets(v.Without(last)), Width: v.Dims[last]}
}
