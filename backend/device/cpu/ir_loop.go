package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// loop computes several elementwise operations and reductions of rows together: for each block of elements, each
// instruction. What lies between them stays in registers, which are memory of a worker that fits into L1.
type loop struct {
	fused   []fusedOp // what it computes
	inputs  []view    // what it reads from outside
	results []*tensor // what others read

	numel, inner, block int // elements in all, of a row (0 without rows), and of a block, a multiple of inner
	rows                int // of a block
	instrs              []instr
	registers           int
	offsets             []int // of each register in the memory of a worker; -1 for those that alias tensors
	scratch             int   // bytes of that memory
	work                int   // instructions before some were combined

	prefetches [][]prefetch // by instruction; nil: nothing is prefetched

	piece    int     // of a row, where rows are too long for a cache and are computed in pieces; 0 otherwise
	phases   []phase // of a row then
	sums     int     // reductions
	crossing []int   // registers that hold all of a row, since a later phase reads them
	sizes    []int   // bytes of their elements
}

// reads are the views that the loop reads from outside.
func (l *loop) reads() []view { return l.inputs }

// writes are the tensors that others read.
func (l *loop) writes() []*tensor { return l.results }

// fusedOp is an operation of a loop.
type fusedOp struct {
	op  compute.OpType
	in  []view
	out *tensor
	row bool // one element for each row
}

// instr is what is done with a block.
type instr struct {
	do   action
	dst  int    // register
	src  [3]int // registers
	v    view   // of what is loaded, collapsed, or stored to
	size int    // bytes of an element of dst
	row  bool   // works on one element for each row

	op      compute.OpType // that an instruction which computes does
	out, in dtypes.DType   // types of its result and of its first operand
	left    bool           // the number of doApplyScalar and doApplyRows is the left operand
	sum     int            // number of a reduction, among those of the loop
	kernel  *fusedKernel   // of doCombine
}

// action is what an instruction does. Those from doApply on compute.
type action int

const (
	doAlias       action = iota // dst is the elements of a tensor, where they are
	doFill                      // dst is filled with one element, before the first block
	doPreload                   // dst is loaded through a view that is the same for all blocks, before the first one
	doLoad                      // dst is loaded through a view, or aliases what it shows
	doAliasOne                  // dst is one element of a tensor, where it is
	doApply                     // dst = op(src...)
	doApplyScalar               // dst = op(src[0], the element src[1])
	doApplyRows                 // row of dst = op(row of src[0], src[1][row])
	doReduce                    // dst[row] = op over the row of src[0]
	doBroadcast                 // row of dst = src[0][row]
	doSwapHalves                // dst is src[0] with the parts of each row in reverse order, as a view says
	doCombine                   // what several instructions do
)

// isFloat32 reports whether an instruction computes float32 from float32.
func (in *instr) isFloat32() bool { return in.out == dtypes.Float32 && in.in == dtypes.Float32 }

// reads returns the registers that an instruction reads.
func (in *instr) reads() []int {
	switch {
	case in.do < doApply:
		return nil
	case in.do == doCombine:
		return slices.Concat(in.kernel.in, in.kernel.scalars)
	}
	return in.src[:]
}

// writes returns the registers that an instruction fills, or makes an alias.
func (in *instr) writes() []int {
	if in.do != doCombine {
		return []int{in.dst}
	}
	if in.kernel.sum < 0 {
		return in.kernel.out
	}
	return append(slices.Clone(in.kernel.out), in.kernel.sum)
}

// fusedKernel is several instructions as one kernel.
type fusedKernel struct {
	of      *vec.Fused
	in, out []int  // registers
	scalars []int  // registers with one number, or one for each row
	each    []bool // which of them have one for each row
	sum     int    // register of the sum of each row; -1 for none
	rows    bool   // the kernel is called for each row
	ahead   int    // bytes from what it reads to what it prefetches
}

// prefetch is what is prefetched after an instruction: a part of what an instruction reads or writes through an alias.
type prefetch struct {
	instr    int // that makes the alias
	from, to int // 64ths of a block
}

// phase is what is computed in a pass over a row: numbers of instructions, in their order.
type phase struct{ rows, elements []int }

// sequence are the numbers of the instructions in the order in which they are done.
func (l *loop) sequence() (list []int) {
	if l.piece == 0 {
		for i := range l.instrs {
			list = append(list, i)
		}
	}
	for _, p := range l.phases {
		list = append(list, p.rows...)
		list = append(list, p.elements...)
	}
	return list
}
