package ir

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// Loop computes several elementwise operations and reductions of rows together: for each block of elements, each
// instruction. What lies between them stays in registers, which are memory of a worker that fits into L1.
type Loop struct {
	Fused   []FusedOp // what it computes
	Inputs  []View    // what it reads from outside
	Results []*Tensor // what others read

	Numel, Inner, Block int // elements in all, of a row (0 without rows), and of a block, a multiple of inner
	Rows                int // of a block
	Instrs              []Instr
	Registers           int
	Offsets             []int // of each register in the memory of a worker; -1 for those that alias tensors
	Scratch             int   // bytes of that memory
	Work                int   // instructions before some were combined

	Prefetches [][]Prefetch // by instruction; nil: nothing is prefetched

	Piece    int     // of a row, where rows are too long for a cache and are computed in pieces; 0 otherwise
	Phases   []Phase // of a row then
	Sums     int     // reductions
	Crossing []int   // registers that hold all of a row, since a later phase reads them
	Sizes    []int   // bytes of their elements
}

// Reads are the views that the loop reads from outside.
func (l *Loop) Reads() []View { return l.Inputs }

// Writes are the tensors that others read.
func (l *Loop) Writes() []*Tensor { return l.Results }

// FusedOp is an operation of a loop.
type FusedOp struct {
	Op  compute.OpType
	In  []View
	Out *Tensor
	Row bool // one element for each row
}

// Instr is what is done with a block.
type Instr struct {
	Do   Action
	Dst  int    // register
	Src  [3]int // registers
	View View   // of what is loaded, collapsed, or stored to
	Size int    // bytes of an element of dst
	Row  bool   // works on one element for each row

	Op      compute.OpType // that an instruction which computes does
	Out, In dtypes.DType   // types of its result and of its first operand
	Left    bool           // the number of ApplyScalar and ApplyRows is the left operand
	Sum     int            // number of a reduction, among those of the loop
	Kernel  *FusedKernel   // of Combine
}

// Action is what an instruction does. Those from Apply on compute.
type Action int

// The actions.
const (
	Alias       Action = iota // dst is the elements of a tensor, where they are
	FillOne                   // dst is filled with one element, before the first block
	Preload                   // dst is loaded through a view that is the same for all blocks, before the first one
	Load                      // dst is loaded through a view, or aliases what it shows
	AliasOne                  // dst is one element of a tensor, where it is
	Apply                     // dst = op(src...)
	ApplyScalar               // dst = op(src[0], the element src[1])
	ApplyRows                 // row of dst = op(row of src[0], src[1][row])
	Reduce                    // dst[row] = op over the row of src[0]
	Broadcast                 // row of dst = src[0][row]
	SwapHalves                // dst is src[0] with the parts of each row in reverse order, as a view says
	Combine                   // what several instructions do
)

// IsFloat32 reports whether an instruction computes float32 from float32.
func (in *Instr) IsFloat32() bool { return in.Out == dtypes.Float32 && in.In == dtypes.Float32 }

// Reads returns the registers that an instruction reads.
func (in *Instr) Reads() []int {
	switch {
	case in.Do < Apply:
		return nil
	case in.Do == Combine:
		return slices.Concat(in.Kernel.In, in.Kernel.Scalars)
	}
	return in.Src[:]
}

// Writes returns the registers that an instruction fills, or makes an alias.
func (in *Instr) Writes() []int {
	if in.Do != Combine {
		return []int{in.Dst}
	}
	if in.Kernel.Sum < 0 {
		return in.Kernel.Out
	}
	return append(slices.Clone(in.Kernel.Out), in.Kernel.Sum)
}

// FusedKernel is several instructions as one kernel.
type FusedKernel struct {
	Of      *vec.Fused
	In, Out []int  // registers
	Scalars []int  // registers with one number, or one for each row
	Each    []bool // which of them have one for each row
	Sum     int    // register of the sum of each row; -1 for none
	Rows    bool   // the kernel is called for each row
	Ahead   int    // bytes from what it reads to what it prefetches
}

// Prefetch is what is prefetched after an instruction: a part of what an instruction reads or writes through an alias.
type Prefetch struct {
	Instr    int // that makes the alias
	From, To int // 64ths of a block
}

// Phase is what is computed in a pass over a row: numbers of instructions, in their order.
type Phase struct{ Rows, Elements []int }

// Sequence are the numbers of the instructions in the order in which they are done.
func (l *Loop) Sequence() (list []int) {
	if l.Piece == 0 {
		for i := range l.Instrs {
			list = append(list, i)
		}
	}
	for _, p := range l.Phases {
		list = append(list, p.Rows...)
		list = append(list, p.Elements...)
	}
	return list
}
