package vec

import "unsafe"

// Fused is a sequence of operations that one kernel does, with the roundings of each of them: the results have the bits
// of the operations one after another. Only those of [Fused.Out] are stored.
//
// Its values are numbered: the streams, which are read, the scalars, and the results of the steps.
type Fused struct {
	Name             string
	Streams, Scalars int
	Steps            []FusedStep
	Out              []int // values that are stored
	Sum              int   // value that is summed up as by [Sum]; -1 for none
	Prefetches       bool  // the kernel prefetches what it will read
	kernel           int   // its number
}

// Run calls the kernel for a block of up to 16,384 elements. A result may be stored over one of the streams.
func (f *Fused) Run(l Level, c *FusedCall) {
	if f.Sum >= 0 && (l == Portable || l == NEON) { // others have them in registers
		c.lanes = lanes{}
	}
	kernelsOf[l].fused[f.kernel](c)
}

// FusedStep is one of the operations.
type FusedStep struct {
	Unary  UnaryOp  // of A, if B is negative
	Binary BinaryOp // of A and B
	A, B   int      // values
}

// FusedCall are the operands of a call.
type FusedCall struct {
	N       int               // elements
	Out     [4]unsafe.Pointer // where results are stored, in the order of [Fused.Out]
	In      [4]unsafe.Pointer
	Scalars [10]float32
	Sum     float32 // is set
	lanes   lanes
	Ahead   int // bytes from what is read to what is prefetched into L2; nothing comes of 0
}

// FusedKernels returns all sequences there are, longer ones before those that are a part of them.
func FusedKernels() []Fused { return fusedTable }

func floats(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }
