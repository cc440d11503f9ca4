package cpu

import "slices"

// gathered says that the right operand of a product is gathered: the members of the first axis of the batch are those of another
// tensor, at given positions. A chain reads them where they lie, so that an attention of some sequences of a cache copies none.
type gathered struct {
	*gatherStep
	size int // elements of a member
}

// views are what is read in place of the operand.
func (g *gathered) views() []view { return []view{g.operand, g.index.indices} }

// at returns where a member begins.
func (g *gathered) at(r *run, member int) int {
	i := integer(r.ptr(g.index.indices, g.from[member]), g.index.indices.of.kind)
	return g.operand.off + min(max(i, 0), g.operand.dims[0]-1)*g.size
}

// picks makes d read what a unit gathers for it, if it gathers whole members of its batch. It returns that unit.
func (d *dot) picks() *unit {
	w := d.b.v.of.writer
	if w == nil || w.root() != w || len(d.axes) == 0 || d.b.v.off != 0 {
		return nil
	}
	g, ok := w.step.(*gatherStep)
	if !ok {
		return nil
	}
	size := volume(g.operand.dims[1:])
	whole := slices.Equal(g.index.axes, []int{0}) && g.index.component == 1 && len(g.index.batch) == 1 && slices.Equal(g.at.collapsed, []int{0}) &&
		slices.Equal(g.at.size[1:], g.operand.dims[1:]) && slices.Equal(g.out.dims[1:], g.operand.dims[1:]) &&
		slices.Equal(g.operand.strides, rowMajor(g.operand.dims))
	if !whole || g.widens() || d.axes[0].N != g.out.dims[0] || d.axes[0].N > 1 && d.axes[0].B != size {
		return nil
	}
	d.gathered = &gathered{g, size}
	return w
}
