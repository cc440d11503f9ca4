// Package cpu is a device of GoMLX that computes on the cores of this machine, in Go and Go assembly.
//
// It implements [compute.Backend] for the operations of transformers and their gradients. Its packages are phases: this
// one is what GoMLX sees (device, buffers, and the builder, which records a graph of nodes), internal/compile makes a
// plan of a graph in a list of passes, internal/ir has the data of both, and internal/exec runs plans. Below these are
// the kernels: internal/gemm multiplies matrices, internal/vec works on rows of numbers, and internal/pool runs loops
// on all workers. The plan of a compiled graph is printed by its String method; testdata/attention.plan is that of a
// small layer.
//
// Every number depends on its own inputs only, not on the size of the batch, on padding, on the number of workers or on
// the instruction set: an element of a matmul is a sum of fixed blocks of the contracted axis, each of them a chain of
// fused multiply-adds in order, and a sum is one fixed tree over the summed axis.
//
// # Glossary
//
//	node             operation of the graph that GoMLX builds
//	view             where the elements of a value are in a tensor: offset, dimensions, strides
//	tensor           memory that steps write and read, in row-major order
//	unit             a step while the graph is compiled: one operation, or several that are fused
//	group            elementwise operations and reductions of rows that become one loop
//	pass             stage of the compilation; internal/compile lists them
//	plan             what comes of a graph: steps in order, tensors, and the size of the arena
//	step             part of a plan: a loop, a matmul, fused attention, a copy, ...
//	loop             a group as instructions on registers, which runs block by block
//	register         memory of a worker for a block of elements, in L1
//	alias            a register that is a part of a tensor, which takes no copy
//	block            elements of a loop that go through all of its instructions before the next ones do; in GEMM a
//	                 part of the contracted axis (512 numbers) or of C
//	piece, phase     part of a row that is too long for L1, and a pass over all of them
//	fused kernel     one vector kernel for several instructions, such as SwiGLU or AdamW
//	grouped matmul   matmul of rows each of which has chosen one of several matrices; those of one are computed together
//	fused attention  matmul, loop and matmul, computed a tile of rows at a time
//	tile             rows of fused attention that are computed at once; in GEMM a block of C that fits into registers
//	arena            memory of the tensors between the steps; those that are not needed at the same time share it
//	donation         an input gives its memory to an output
//	packed matrix    a right operand in panels of 32 columns, the order in which GEMM reads it
//	panel            32 columns of the right operand of a matmul
//	worker           goroutine of the pool
//	level            instruction set: portable, AVX2, AVX-512 or NEON
package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// Name under which the device is registered with GoMLX.
const Name = "cpu"

func init() {
	compute.Register(Name, func(config string) (compute.Backend, error) {
		if config != "" {
			return nil, fmt.Errorf("cpu: the configuration %q is not known; leave it empty", config)
		}
		return New(nil)
	})
}

// Options of a device. The zero value and nil are the defaults.
type Options struct {
	// Workers is the number of goroutines that compute. Default: as many as the process may use, the same ones for all
	// devices of the process.
	Workers int
}

// Device computes graphs. Its methods may be called from several goroutines.
type Device struct {
	notimplemented.Backend // for what later versions of the interface add
	env                    exec.Env
	own                    bool // the pool is not that of the process
	unfused                bool // tests: each operation is a step of its own
	finalized              atomic.Bool
}

var _ compute.Backend = (*Device)(nil)

// New returns a device.
func New(opts *Options) (*Device, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Workers < 0 {
		return nil, fmt.Errorf("cpu: %d workers; give a positive number, or 0 for all cores", opts.Workers)
	}
	level, err := cpuid.Default()
	if err != nil {
		return nil, err
	}
	d := &Device{env: exec.Env{Pool: common(), Level: level, Kernels: gemm.New(level)}}
	if opts.Workers > 0 {
		d.env.Pool, d.own = pool.New(opts.Workers), true
	}
	return d, nil
}

// common is the pool of the process.
var common = sync.OnceValue(func() *pool.Pool { return pool.New(0) })

// Name returns "cpu".
func (d *Device) Name() string { return Name }

// String returns "cpu".
func (d *Device) String() string { return Name }

// Description tells how the device computes, and what it is missing.
func (d *Device) Description() string {
	if d.env.Level == cpuid.Portable {
		return fmt.Sprintf("CPU in plain Go, %d workers: slow, without AVX2, AVX-512 or NEON", d.env.Pool.Workers())
	}
	return fmt.Sprintf("CPU with %s, %d workers", d.env.Level, d.env.Pool.Workers())
}

// NumDevices is 1.
func (d *Device) NumDevices() int { return 1 }

// DeviceDescription is that of the device.
func (d *Device) DeviceDescription(compute.DeviceNum) string { return d.Description() }

// HeldBytes is the memory that the device keeps for the next runs and that none uses now.
func (d *Device) HeldBytes() int { return d.env.Memory.Held() }

// Builder returns a builder of a computation.
func (d *Device) Builder(name string) compute.Builder { return newBuilder(d, name) }

// Finalize ends the device's own workers, if it has some. Buffers stay readable.
func (d *Device) Finalize() {
	if !d.finalized.Swap(true) && d.own {
		d.env.Pool.Close()
	}
}

// IsFinalized reports whether Finalize was called.
func (d *Device) IsFinalized() bool { return d.finalized.Load() }

// Capabilities lists the operations and types. Functions only declare operations that are called by name: see
// [Device.HasOperation]. Loops and shapes that are not known when a graph is built are missing.
func (d *Device) Capabilities() compute.Capabilities {
	c := compute.Capabilities{Functions: true, Operations: map[compute.OpType]bool{}, DTypes: map[dtypes.DType]bool{}}
	for t := range ir.DataTypes {
		c.DTypes[t] = true
	}
	for op := range compute.OpTypeLast {
		if ir.IsElementwise(op) {
			c.Operations[op] = true
		}
	}
	for _, op := range others {
		c.Operations[op] = true
	}
	return c
}

// others are the operations that are not element-wise.
var others = []compute.OpType{
	compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity, compute.OpTypeReshape,
	compute.OpTypeTranspose,
	compute.OpTypeBroadcastInDim, compute.OpTypeSlice, compute.OpTypeReverse, compute.OpTypeConcatenate, compute.OpTypePad,
	compute.OpTypeGather, compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin,
	compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice, compute.OpTypeConvertDType, compute.OpTypeWhere,
	compute.OpTypeClamp, compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin,
	compute.OpTypeReduceProduct, compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr, compute.OpTypeArgMinMax,
	compute.OpTypeCumSum, compute.OpTypeDotGeneral, compute.OpTypeIota, compute.OpTypeOptimizationBarrier,
	compute.OpTypeSchedulingBarrier, compute.OpTypeCall,
}

// InstructionsEnv is the environment variable that chooses an instruction set by name; empty is the best one.
const InstructionsEnv = cpuid.Env

// Plain is the name of the instruction set that works everywhere, and is slow.
const Plain = "portable"

// Instructions returns the name of the instruction set that a new device uses, and those that this CPU has, the slowest
// first. It fails, as [New] does, when [InstructionsEnv] asks for one that there is not.
func Instructions() (used string, available []string, err error) {
	for _, l := range cpuid.Supported() {
		available = append(available, l.String())
	}
	level, err := cpuid.Default()
	if err != nil {
		return "", available, err
	}
	return level.String(), available, nil
}

// Read loads all numbers of x with all workers and does nothing with them. The rate at which it does is a bound for
// what goes through memory once, such as the matmul of a row and a large matrix.
func (d *Device) Read(x []float32) { d.env.Kernels.Read(d.env.Pool, x) }
