package exec

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// Sequences of a cache that begin with the same tokens have the same pages there. Fused attention finds them when it
// runs, and goes through these pages once for the rows of all: of what decoding reads, the keys and values are the most
// where contexts are long. Each element is still a chain of its own, so this changes no bit.

// joinedLeast is the number of keys that must be shared for it to be worth the copies of the rows.
const joinedLeast = 64

// joined returns the tiles of all members of the batch, of which those with the same first pages are together.
func (k *attentionRunner) joined(r *run, members int) (list []tile) {
	g := k.First.Gathered
	groups := map[int][]int{} // by the first page
	var order []int
	for i := range members {
		first, _ := firstPage(k.First, i)
		page := r.page(g, first)
		if groups[page] == nil {
			order = append(order, page)
		}
		groups[page] = append(groups[page], i)
	}
	for _, page := range order {
		list = k.join(r, list, groups[page], min(k.Joined, max(1, members/(joinedTiles*r.Pool.Workers()))))
	}
	return list
}

// joinedTiles is the least number of tiles of a worker: one that reads the pages of many sequences takes long.
const joinedTiles = 3

// join appends the tiles of members with the same first page, of at most so many members each.
func (k *attentionRunner) join(r *run, list []tile, group []int, most int) []tile {
	for len(group) > 0 {
		t := tile{members: group[:1:1], n: k.Rows}
		used := k.used(r, t)
		for _, other := range group[1:min(most, len(group))] {
			pages := k.sharedPages(r, group[0], other, used)
			if pages == 0 {
				break
			}
			t.members, used = group[:len(t.members)+1], pages*k.First.Gathered.Each
			t.shared = used
		}
		list, group = append(list, t), group[len(t.members):]
	}
	return list
}

// sharedPages returns how many pages of the first so many keys two members share for both matmuls; 0 if they are few.
func (k *attentionRunner) sharedPages(r *run, a, b, keys int) int {
	n := r.samePages(k.First, a, b, keys/k.First.Gathered.Each)
	n = r.samePages(k.Second, a, b, n)
	if n*k.First.Gathered.Each < joinedLeast {
		return 0
	}
	return n
}

// joinLeft copies the rows of the left operand of a tile of several members one after another.
func (k *attentionRunner) joinLeft(r *run, p tile) (gemm.View, memory.Span) {
	x, n := k.First.A, k.First.Inner
	space := r.Memory.Alloc(4 * p.rows() * n)
	dst := memory.Slice[float32](space.Base, p.rows()*n)
	for i, member := range p.members {
		a, _ := k.First.Offsets(member)
		src := from[float32](r, x.View)[a+p.row*x.Row:]
		for j := range p.n {
			to := dst[(i*p.n+j)*n:][:n]
			for e := range to {
				to[e] = src[j*x.Row+e*x.Inner]
			}
		}
	}
	return gemm.View{Data: dst, Row: n, Col: 1}, space
}

// sums multiplies the rows of a tile by the right operand of the second matmul. They end with their last number that is
// not zero.
func (k *attentionRunner) sums(r *run, workers *pool.Pool, p tile, inner, out []float32) {
	m, width := k.Second, k.Second.B.Rows
	if g := m.Gathered; g == nil || g.Each >= k.Width {
		data, list := r.rightOperand(m, p.members[0], 0, k.Width)
		r.Kernels.Mul(workers, gemm.Matmul{
			C: gemm.Out{Data: out, Row: width}, A: gemm.View{Data: inner, Row: k.Width, Col: 1},
			B: gemm.View{Data: data[list[0].at:], Row: m.B.Inner, Col: m.B.Row},
			M: p.n, N: width, K: k.lastColumn(inner, p.n),
		})
		return
	}
	space := r.Memory.Alloc(4 * p.rows() * width)
	defer r.Memory.Release(space)
	all := chains{
		run: r, workers: workers, matmul: m, left: inner, step: k.Width, out: out,
		block: memory.Slice[float32](space.Base, p.rows()*width),
	}
	if p.shared > 0 {
		all.add(p, 0, p.shared)
	}
	for i := range p.members {
		one, n := all, p.n*width
		one.left, one.out, one.block = all.left[i*p.n*k.Width:], out[i*n:][:n], all.block[i*n:][:n]
		end := max(p.shared, k.lastColumn(one.left, p.n))
		one.add(p.of(i), p.shared, end)
		if end == 0 {
			clear(one.out)
		}
		if end%gemm.Block > 0 {
			one.addBlock(end)
		}
	}
}

// chains are the sums of rows times pages. Pages are parts of the fixed blocks of the contracted axis: the chains of a
// block go from page to page, and are added to those of the blocks before.
type chains struct {
	*run
	workers    *pool.Pool
	matmul     *ir.Matmul
	left       []float32 // rows
	step       int       // from a row to the next
	out, block []float32 // the sums of all blocks, and those of a block behind the first
}

// add goes on with [from, to) of the contracted axis, for the rows of a tile, of which the pages are those of the first
// member.
func (c *chains) add(p tile, from, to int) {
	width := c.matmul.B.Rows
	data, list := c.rightOperand(c.matmul, p.members[0], from, to)
	for _, s := range list {
		for at := s.from; at < s.to; {
			end := min(s.to, (at/gemm.Block+1)*gemm.Block)
			m := gemm.Matmul{
				C: gemm.Out{Data: c.out, Row: width}, A: gemm.View{Data: c.left[at:], Row: c.step, Col: 1},
				B: gemm.View{Data: data[s.at+(at-s.from)*width:], Row: width, Col: 1},
				M: p.rows(), N: width, K: end - at,
			}
			if at >= gemm.Block {
				m.C.Data = c.block
			}
			if at%gemm.Block == 0 {
				c.Kernels.Mul(c.workers, m)
			} else {
				c.Kernels.Resume(c.workers, m)
			}
			if at = end; at%gemm.Block == 0 {
				c.addBlock(at)
			}
		}
	}
}

// addBlock adds the sums of a block that ends there.
func (c *chains) addBlock(end int) {
	if end > gemm.Block {
		for i, x := range c.block {
			c.out[i] += x
		}
	}
}
