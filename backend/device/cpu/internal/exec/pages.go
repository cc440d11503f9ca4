package exec

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// stretch is a part [from, to) of the long axis of a gathered matrix that lies in memory as a whole, from an element of
// the operand on. Pages that follow one another are one stretch.
type stretch struct{ at, from, to int }

// page returns which member of the operand the gathered page i is.
func (r *run) page(g *ir.Gathered, i int) int {
	indices, last := g.By.Index.Indices, g.By.Operand.Dims[0]-1
	p := r.ptr(indices, g.By.From.At(i))
	if indices.Of.DType == dtypes.Int32 {
		return min(max(int(*(*int32)(p)), 0), last)
	}
	return min(max(integer(p, indices.Of.DType), 0), last)
}

// firstPage returns the number of the first page of a matrix, and where the matrix begins in it.
func firstPage(m *ir.Matmul, member int) (page, off int) {
	_, b := m.Offsets(member)
	return b / m.Gathered.Page, b % m.Gathered.Page
}

// stretches appends the stretches of [from, to) of a member of the batch to a list. from is where a page begins.
func (r *run) stretches(list []stretch, m *ir.Matmul, member, from, to int) []stretch {
	g := m.Gathered
	first, off := firstPage(m, member)
	for at, last := from, -2; at < to; at += g.Each {
		end := min(at+g.Each, to)
		page := r.page(g, first+at/g.Each)
		if n := len(list) - 1; page == last+1 {
			list[n].to = end
		} else {
			list = append(list, stretch{g.By.Operand.Off + page*g.Page + off, at, end})
		}
		last = page
	}
	return list
}

// samePages returns how many of the first n pages two members of the batch have in common.
func (r *run) samePages(m *ir.Matmul, a, b, n int) int {
	i, _ := firstPage(m, a)
	j, _ := firstPage(m, b)
	for at := range n {
		if r.page(m.Gathered, i+at) != r.page(m.Gathered, j+at) {
			return at
		}
	}
	return n
}
