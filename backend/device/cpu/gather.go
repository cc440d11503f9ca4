package cpu

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// indexing is how gather and scatter find their places: an index vector for each batch element, whose components are
// positions on axes of the operand.
type indexing struct {
	indices   view  // of the first component of each vector
	step      int   // between components
	axes      []int // of the operand, one for each component
	batch     []int // dimensions of the batch
	component int   // number of components
}

// newIndexing splits indices into a batch of vectors. vector may be the rank: then each index is a vector of one.
func newIndexing(indices view, vector int, axes []int) indexing {
	x := indexing{indices: indices, axes: axes, component: 1}
	if vector < len(indices.dims) {
		x.step, x.component = indices.strides[vector], indices.dims[vector]
		x.indices = indices.without(vector)
	}
	x.batch = x.indices.dims
	return x
}

// position reads the vector at off into pos, one place for each axis of the operand.
func (x *indexing) position(r *run, off int, pos []int) {
	for k := range x.component {
		pos[x.axes[k]] = integer(r.ptr(x.indices, off+k*x.step), x.indices.of.kind)
	}
}

// newGather copies a window of the operand for each index vector.
func newGather(at gather, out, operand, indices view) step {
	x := newIndexing(indices, at.vector, at.start)
	window := view{of: operand.of, strides: []int{}, dims: []int{}}
	for i := range operand.dims {
		if !slices.Contains(at.collapsed, i) {
			window.dims = append(window.dims, at.size[i])
			window.strides = append(window.strides, operand.strides[i])
		}
	}
	var to, batch view
	to.of, batch.of = out.of, out.of
	for i := range out.dims {
		part := &batch
		if slices.Contains(at.offsets, i) {
			part = &to
		}
		part.dims = append(part.dims, out.dims[i])
		part.strides = append(part.strides, out.strides[i])
	}
	return &gatherStep{
		at: at, out: out, operand: operand, index: x, from: offsetsOf(x.indices), places: offsetsOf(batch), window: newMove(to, window),
	}
}

// gatherStep copies windows.
type gatherStep struct {
	at           gather
	out, operand view
	index        indexing
	from, places []int // of the index vectors, and of the windows in the output
	window       move
}

func (g *gatherStep) run(r *run) {
	parts := min(len(g.from), 4*r.device.pool.Workers())
	if g.out.of.count < threshold {
		parts = min(parts, 1)
	}
	w := r.packed[g.operand.of.id]
	r.device.pool.For(parts, func(p int) {
		pos := make([]int, len(g.operand.dims))
		for i := len(g.from) * p / parts; i < len(g.from)*(p+1)/parts; i++ {
			g.index.position(r, g.from[i], pos)
			for a := range pos {
				pos[a] = min(max(pos[a], 0), g.operand.dims[a]-g.at.size[a])
			}
			if w != nil {
				w.Column(list[float32](r.ptr(g.out, g.places[i]), w.K), pos[0])
				continue
			}
			src := g.operand.off
			for a := range pos {
				src += pos[a] * g.operand.strides[a]
			}
			if g.widens() {
				width := g.at.size[1]
				vec.FromBfloat16(r.device.level, list[float32](r.ptr(g.out, g.places[i]), width), list[uint16](r.ptr(g.operand, src), width))
				continue
			}
			g.window.run(r.ptr(g.out, g.places[i]), r.ptr(g.operand, src))
		}
	})
}

// readsPacked: whole rows of a packed matrix are gathered, and written one after another.
func (g *gatherStep) readsPacked(v view) bool {
	return v.of == g.operand.of && v.of != g.index.indices.of && len(v.dims) == 2 && v.off == 0 &&
		slices.Equal(v.dims, v.of.matrix) && slices.Equal(v.strides, rowMajor(v.dims)) && g.at.ofRows(v.dims[1], len(g.out.dims))
}

// widens: rows of bfloat16 become float32.
func (g *gatherStep) widens() bool { return g.operand.of.kind != g.out.of.kind }

// newScatter copies the operand and combines a window of it with each update, in the order of the updates.
func newScatter(l vec.Level, op compute.OpType, at scatter, out view, in []view) step {
	updates := in[2]
	x := newIndexing(in[1], at.vector, at.target)
	window := view{of: updates.of} // of an update
	batch := view{of: updates.of, off: updates.off}
	for i := range updates.dims {
		part := &batch
		if slices.Contains(at.window, i) {
			part = &window
		}
		part.dims = append(part.dims, updates.dims[i])
		part.strides = append(part.strides, updates.strides[i])
	}
	to := view{of: out.of, dims: window.dims} // of the output
	size := slices.Repeat([]int{1}, len(out.dims))
	for i := range out.dims {
		if !slices.Contains(at.inserted, i) {
			size[i] = window.dims[len(to.strides)]
			to.strides = append(to.strides, out.strides[i])
		}
	}
	combine := scatterKernel(l, op, out.of.kind)
	from, places, runs := offsetsOf(x.indices), offsetsOf(batch), newRuns(to, window)
	return newUpdate(out, in, func(r *run) {
		pos := make([]int, len(out.dims))
		for i, off := range from {
			x.position(r, off, pos)
			dst, inside := 0, true
			for a := range pos {
				inside = inside && pos[a] >= 0 && pos[a]+size[a] <= out.dims[a]
				dst += pos[a] * out.strides[a]
			}
			if !inside {
				continue
			}
			for k, at := range runs.to {
				combine(r.ptr(out, dst+at), r.ptr(updates, places[i]+runs.from[k]), runs.n)
			}
		}
	})
}

// runs are the pieces of two windows of one shape in which the elements of both lie together.
type runs struct {
	to, from []int // where they begin
	n        int   // elements of each
}

func newRuns(to, from view) runs {
	if a, b := to.collapse(), from.collapse(); len(a.dims) == 1 && len(b.dims) == 1 && a.strides[0] == 1 && b.strides[0] == 1 {
		return runs{[]int{0}, []int{0}, a.dims[0]}
	}
	n, last := 1, len(to.dims)-1
	if last >= 0 && to.strides[last] == 1 && from.strides[last] == 1 { // a row at once
		n = to.dims[last]
		to.dims, to.strides = to.dims[:last], to.strides[:last]
		from.dims, from.strides = from.dims[:last], from.strides[:last]
	}
	return runs{offsetsOf(to), offsetsOf(from), n}
}

// start reads scalars, and moves them so that a window of the given size lies inside.
func start(r *run, scalars []view, dims, size []int) []int {
	pos := make([]int, len(dims))
	for i, s := range scalars {
		pos[i] = min(max(integer(r.ptr(s, s.off), s.of.kind), 0), dims[i]-size[i])
	}
	return pos
}

func dynamicSlice(out view, in []view) step {
	x := in[0]
	return stepFunc(func(r *run) {
		pos := start(r, in[1:], x.dims, out.dims)
		copyView(r, out, 0, x.slice(pos, slices.Repeat([]int{1}, len(pos)), out.dims).collapse())
	})
}

func dynamicUpdate(out view, in []view) step {
	update, ones := in[1], slices.Repeat([]int{1}, len(out.dims))
	m := newMove(view{of: out.of, dims: update.dims, strides: out.strides}, update)
	return newUpdate(out, in, func(r *run) {
		to := out.slice(start(r, in[2:], out.dims, update.dims), ones, update.dims)
		m.run(r.ptr(out, to.off), r.ptr(update, update.off))
	})
}
