package exec

import (
	"slices"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// grouping is the rows of a grouped matmul in the order of their matrices.
type grouping struct {
	*ir.Grouping
	list  []int // those of a matrix follow one another, in their order
	begin []int // where those of each begin, and the end
}

// group sorts the rows by their matrices, whose numbers number makes of ids: -1 leaves a row out.
func (r *run) group(g *ir.Grouping, matrices int, number func(id int) int) grouping {
	ids, begin := make([]int, g.Count), make([]int, matrices+1)
	for i := range ids {
		ids[i] = number(integer(r.ptr(g.IDs.View, g.IDs.At.At(i)), g.IDs.View.Of.DType))
		if ids[i] >= 0 {
			begin[ids[i]+1]++
		}
	}
	for e := range matrices {
		begin[e+1] += begin[e]
	}
	list, next := make([]int, begin[matrices]), slices.Clone(begin)
	for i, e := range ids {
		if e >= 0 {
			list[next[e]] = i
			next[e]++
		}
	}
	return grouping{g, list, begin}
}

// groupPart is some rows of a matrix, and where they are in a chunk.
type groupPart struct {
	matrix int
	rows   []int
	at     int
	first  bool // they are the first ones of the matrix
}

// chunks calls f for chunks of rows. Those of a matrix are in one chunk, if there is room for all of them.
func (g *grouping) chunks(f func(parts []groupPart)) {
	var parts []groupPart
	at := 0
	for e := range len(g.begin) - 1 {
		for rows := range slices.Chunk(g.list[g.begin[e]:g.begin[e+1]], max(1, g.Chunk)) {
			if at+len(rows) > g.Chunk {
				f(parts)
				parts, at = parts[:0], 0
			}
			parts = append(parts, groupPart{e, rows, at, &rows[0] == &g.list[g.begin[e]]})
			at += len(rows)
		}
	}
	if len(parts) > 0 {
		f(parts)
	}
}

// copyRows calls f for each row of the parts that are copied, and for its place in the chunk, with all workers. A row
// has so many numbers.
func (r *run) copyRows(parts []groupPart, width int, f func(row, at int)) {
	last := parts[len(parts)-1]
	each := max(1, threshold/max(1, width))
	r.Pool.For(ir.CeilDiv(last.at+len(last.rows), each), func(i int) {
		from, to := i*each, (i+1)*each
		for _, p := range parts {
			for k := max(0, from-p.at); k < min(len(p.rows), to-p.at); k++ {
				f(p.rows[k], p.at+k)
			}
		}
	})
}

// copyIn copies rows of x to a chunk.
func (r *run) copyIn(parts []groupPart, x ir.Rows, to []float32) {
	r.copyRows(parts, x.Width, func(row, at int) {
		copy(to[at*x.Width:][:x.Width], memory.Slice[float32](r.ptr(x.View, x.At.At(row)), x.Width))
	})
}

// grouped multiplies each row by its matrix. A row that is alone with its matrix is not copied.
func (r *run) grouped(s *ir.Grouped) {
	most := len(s.Matrices) - 1
	g := r.group(&s.Grouping, len(s.Matrices), func(id int) int { return min(max(id, 0), most) })
	inner, columns := s.X.Width, s.Out.Dims[len(s.Out.Dims)-1]
	space := from[float32](r, ir.Whole(s.Space, s.Space.Dims))
	xs, ys := space[:s.Chunk*inner], space[s.Chunk*inner:]
	out := from[float32](r, s.Out)
	g.chunks(func(parts []groupPart) {
		several := slices.DeleteFunc(slices.Clone(parts), func(p groupPart) bool { return len(p.rows) == 1 })
		if len(several) > 0 {
			r.copyIn(several, s.X, xs)
		}
		groups := make([]gemm.Group, len(parts))
		for i, p := range parts {
			m := gemm.Matmul{M: len(p.rows), N: columns, K: inner}
			m.A = gemm.View{Data: xs[p.at*inner:], Row: inner, Col: 1}
			m.C = gemm.Out{Data: ys[p.at*columns:], Row: columns}
			if row := p.rows[0]; m.M == 1 {
				m.A.Data = memory.Slice[float32](r.ptr(s.X.View, s.X.At.At(row)), inner)
				m.C.Data = out[row*columns:]
			}
			groups[i] = r.groupOf(s, s.Matrices[p.matrix], m)
		}
		r.Kernels.MulGroups(r.Pool, groups)
		if len(several) > 0 {
			r.copyRows(several, columns, func(row, at int) { copy(out[row*columns:][:columns], ys[at*columns:]) })
		}
	})
}

// groupOf is the matmul m with a matrix.
func (r *run) groupOf(s *ir.Grouped, w ir.View, m gemm.Matmul) gemm.Group {
	g := gemm.Group{Matmul: m, Packed: r.packed[w.Of.ID], Transposed: s.Transposed}
	if g.Packed != nil {
		return g
	}
	row, column := w.Strides[0], w.Strides[1]
	if w.Of.DType == dtypes.BFloat16 { // of one row or column: others are packed
		wide := make([]float32, w.Of.Count)
		vec.FromBfloat16(r.Level, wide, memory.Slice[uint16](r.ptr(w, 0), w.Of.Count))
		g.B.Data = wide[w.Off:]
	} else {
		g.B.Data = from[float32](r, w)
	}
	g.B.Row, g.B.Col = column, row
	if s.Transposed {
		g.B.Row, g.B.Col = row, column
	}
	return g
}

// groupedOuter sums up yᵀx for each matrix.
func (r *run) groupedOuter(s *ir.GroupedOuter) {
	matrices, columns, height := s.Out.Dims[0], s.X.Width, s.Y.Width
	g := r.group(&s.Grouping, matrices, func(id int) int {
		if id < 0 || id >= matrices {
			return -1
		}
		return id
	})
	size := height * columns
	out := from[float32](r, s.Out)
	r.Pool.For(matrices, func(e int) {
		if g.begin[e] == g.begin[e+1] {
			clear(out[e*size:][:size])
		}
	})
	space := from[float32](r, ir.Whole(s.Space, s.Space.Dims))
	xs, ys := space[:s.Chunk*columns], space[s.Chunk*columns:]
	g.chunks(func(parts []groupPart) {
		r.copyIn(parts, s.X, xs)
		r.copyIn(parts, s.Y, ys)
		groups := make([]gemm.Group, len(parts))
		for i, p := range parts {
			groups[i].Matmul = gemm.Matmul{
				C: gemm.Out{Data: out[p.matrix*size:], Row: columns},
				A: gemm.View{Data: ys[p.at*height:], Row: 1, Col: height},
				B: gemm.View{Data: xs[p.at*columns:], Row: columns, Col: 1},
				M: height, N: columns, K: len(p.rows), Add: !p.first,
			}
		}
		r.Kernels.MulGroups(r.Pool, groups)
	})
}
