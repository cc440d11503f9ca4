package cpu

import (
	"slices"
	"unsafe"

	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// reduction lowers a reduction: of the last axes it is fused, of others it is a unit. The order of the additions follows from the
// axes alone, not from where the elements lie, which depends on what was fused.
func (c *compiler) reduction(n *node, x view) view {
	axes := n.attr.(reduce).axes
	k := reduceKernel(c.device.level, n.op, x.of.kind)
	if volume(x.dims) == 0 {
		return c.single(n.id, n.shape, nil, func(out view) step {
			return stepFunc(func(r *run) { k.start(r.ptr(out, 0), out.of.count) })
		})
	}
	var kept []int
	inner := 1
	for i, d := range x.dims {
		if slices.Contains(axes, i) {
			inner *= d
		} else {
			kept = append(kept, i)
		}
	}
	switch {
	case inner == 1:
		x = x.transpose(append(slices.Clone(kept), axes...))
		x.dims, x.strides = x.dims[:len(kept)], x.strides[:len(kept)]
		return x
	case trailing(x, axes):
		if n.shape.Size() == 1 && inner > chunk {
			return c.longRow(n, x, k)
		}
		return c.fuseRows(n, x, inner)
	}
	if kept := longer(x, kept); kept[len(kept)-1] > slices.Max(longer(x, axes)) {
		return c.single(n.id, n.shape, []view{x}, func(out view) step { return columns(out, x, axes, kept, k) })
	}
	rows := x.transpose(append(slices.Clone(kept), axes...))
	rows = c.copy(rows, shapes.Make(n.shape.DType, rows.dims...), n.id)
	return c.fuseRows(n, rows, inner)
}

// longer returns the axes of more than one element.
func longer(x view, axes []int) []int {
	return slices.DeleteFunc(slices.Clone(axes), func(i int) bool { return x.dims[i] == 1 })
}

// trailing reports whether axes are the last ones, but for axes of one element.
func trailing(x view, axes []int) bool {
	reduced := false
	for i, d := range x.dims {
		if d == 1 {
			continue
		}
		is := slices.Contains(axes, i)
		if reduced && !is {
			return false
		}
		reduced = is
	}
	return true
}

// columns reduces all but the kept axes: each row of the last kept axis is combined with the output, in order. More than a block of
// rows are reduced block by block, as a product is, so that long sums keep their accuracy.
func columns(out, x view, axes, kept []int, k *reducer) step {
	last := kept[len(kept)-1]
	outer, width := x.transpose(kept[:len(kept)-1]), x.dims[last]
	outer.off = 0
	reduced := x.transpose(axes)
	groups, rows := offsetsOf(outer), offsetsOf(reduced)
	stride := x.strides[last]
	// Work is cut by groups and by columns, so the order of the rows is the same for any number of workers.
	const part = 256
	parts := (width + part - 1) / part
	return stepFunc(func(r *run) {
		r.device.pool.For(len(groups)*parts, func(i int) {
			g, first := i/parts, i%parts*part
			n := min(part, width-first)
			var line8, block8 [part * 8]byte
			reduce := func(acc unsafe.Pointer, rows []int) {
				k.start(acc, n)
				for _, off := range rows {
					p := r.ptr(x, groups[g]+off+first*stride)
					if stride != 1 {
						line(unsafe.Pointer(&line8), p, n, stride, x.of.size)
						p = unsafe.Pointer(&line8)
					}
					k.columns(acc, p, n)
				}
			}
			acc := r.ptr(out, g*width+first)
			reduce(acc, rows[:min(gemm.Block, len(rows))])
			for from := gemm.Block; from < len(rows); from += gemm.Block {
				reduce(unsafe.Pointer(&block8), rows[from:min(from+gemm.Block, len(rows))])
				k.columns(acc, unsafe.Pointer(&block8), n)
			}
		})
	})
}

// longRow reduces everything: the pieces of the row by all workers, then what they gave.
func (c *compiler) longRow(n *node, x view, k *reducer) view {
	reads := x
	if !x.contiguous() {
		reads = c.copy(x, shapes.Make(n.shape.DType, x.dims...), n.id)
	}
	count := volume(x.dims)
	pieces := (count + chunk - 1) / chunk
	parts := c.single(n.id, shapes.Make(n.shape.DType, pieces), []view{reads}, func(out view) step {
		return stepFunc(func(r *run) {
			r.device.pool.For(pieces, func(i int) {
				k.rows(r.ptr(out, i), r.ptr(reads, reads.off+i*chunk), 1, min(chunk, count-i*chunk))
			})
		})
	})
	return c.single(n.id, n.shape, []view{parts}, func(out view) step {
		return stepFunc(func(r *run) { k.rows(r.ptr(out, 0), r.ptr(parts, 0), 1, pieces) })
	})
}
