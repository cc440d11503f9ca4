package graphx

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// sized is a device whose programs say what they take, and which counts those that exist.
type sized struct {
	compute.Backend
	bytes    int
	compiled atomic.Int64
	live     atomic.Int64
}

func (d *sized) Builder(name string) compute.Builder {
	return &sizedBuilder{d.Backend.Builder(name), d}
}

type sizedBuilder struct {
	compute.Builder
	device *sized
}

func (b *sizedBuilder) Compile() (compute.Executable, error) {
	b.device.compiled.Add(1)
	b.device.live.Add(1)
	run, err := b.Builder.Compile()
	return &sizedProgram{Executable: run, device: b.device}, err
}

type sizedProgram struct {
	compute.Executable
	device *sized
	ended  atomic.Bool
}

func (p *sizedProgram) ProgramBytes() int { return p.device.bytes }

func (p *sizedProgram) Finalize() {
	if !p.ended.Swap(true) {
		p.device.live.Add(-1)
	}
	p.Executable.Finalize()
}

// plusOne builds x + 1.
func plusOne(in []*graph.Node) []*graph.Node { return []*graph.Node{graph.AddScalar(in[0], 1)} }

// requirePlusOne calls the program of x + 1 for n numbers.
func requirePlusOne(t testing.TB, p *Programs, n int) {
	x := tensors.FromFlatDataAndDimensions(make([]float32, n), n)
	out, err := p.Call(n, plusOne, []any{x})
	require.NoError(t, err)
	got := tensors.MustCopyFlatData[float32](out[0])
	require.Len(t, got, n)
	require.Equal(t, float32(1), got[n-1])
}

// TestPrograms_DropsOldest: as many are kept as there is room for, the last ones that were called; others are
// finalized, and compiled again when they are called.
func TestPrograms_DropsOldest(t *testing.T) {
	d := &sized{Backend: graphtest.CPU(t), bytes: 10}
	p := NewPrograms(d, 35)
	for _, n := range []int{1, 2, 3, 1, 4} { // 2 goes
		requirePlusOne(t, p, n)
		require.LessOrEqual(t, p.Bytes(), int64(35))
	}
	require.Equal(t, 3, p.Len())
	require.Equal(t, int64(3), d.live.Load())
	require.Equal(t, int64(4), d.compiled.Load())
	for _, n := range []int{1, 3, 4} {
		requirePlusOne(t, p, n)
	}
	require.Equal(t, int64(4), d.compiled.Load(), "they are kept")
	requirePlusOne(t, p, 2)
	require.Equal(t, int64(5), d.compiled.Load(), "it was dropped")

	p.Limit(10)
	require.Equal(t, 1, p.Len())
	require.Equal(t, int64(1), d.live.Load())
	requirePlusOne(t, p, 2)
	require.Equal(t, int64(5), d.compiled.Load(), "the last one stays")
}

// TestPrograms_LargestStays: a program for which there is no room is kept until the next one is called.
func TestPrograms_LargestStays(t *testing.T) {
	d := &sized{Backend: graphtest.CPU(t), bytes: 100}
	p := NewPrograms(d, 35)
	for range 3 {
		requirePlusOne(t, p, 1)
	}
	require.Equal(t, int64(1), d.compiled.Load())
	requirePlusOne(t, p, 2)
	require.Equal(t, 1, p.Len())
	require.Equal(t, int64(1), d.live.Load())
}

// TestPrograms_Concurrent: none is dropped while it runs, and one that several wait for is compiled once.
func TestPrograms_Concurrent(t *testing.T) {
	d := &sized{Backend: graphtest.CPU(t), bytes: 10}
	p := NewPrograms(d, 20)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 50 {
				n := 1 + rng.IntN(6)
				x := tensors.FromFlatDataAndDimensions(make([]float32, n), n)
				out, err := p.Call(n, plusOne, []any{x})
				if err != nil {
					t.Error(err)
					return
				}
				if got := tensors.MustCopyFlatData[float32](out[0]); len(got) != n || got[0] != 1 {
					t.Errorf("%d numbers: %v", n, got)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, p.Bytes(), int64(20))
	require.Equal(t, int64(p.Len()), d.live.Load())

	before := d.compiled.Load()
	p = NewPrograms(d, 20)
	for range 8 {
		wg.Go(func() {
			x := tensors.FromFlatDataAndDimensions(make([]float32, 7), 7)
			if _, err := p.Call(7, plusOne, []any{x}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, before+1, d.compiled.Load())
}

// TestPrograms_Errors: what fails to compile is not kept, and the next call tries again.
func TestPrograms_Errors(t *testing.T) {
	p := NewPrograms(graphtest.CPU(t), 1<<20)
	x := tensors.FromFlatDataAndDimensions([]float32{1, 2}, 2)
	broken := errors.New("broken")
	_, err := p.Call("key", func([]*graph.Node) []*graph.Node { panic(broken) }, []any{x})
	require.ErrorIs(t, err, broken)
	require.Zero(t, p.Len())
	out, err := p.Call("key", plusOne, []any{x})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 3}, tensors.MustCopyFlatData[float32](out[0]))
	_, err = p.Call("other", plusOne, []any{1})
	require.ErrorContains(t, err, "input 0 is a int, want a tensor")
	three := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3}, 3)
	_, err = p.Call("key", plusOne, []any{three})
	require.Error(t, err, "another shape under the same key")
}

// TestPrograms_Compile: what is compiled ahead is not compiled by its call, however many do both at once.
func TestPrograms_Compile(t *testing.T) {
	d := &sized{Backend: graphtest.CPU(t), bytes: 10}
	p := NewPrograms(d, 20)
	of := func(n int) []any { return []any{tensors.FromFlatDataAndDimensions(make([]float32, n), n)} }
	require.NoError(t, p.Compile(3, plusOne, of(3)))
	requirePlusOne(t, p, 3)
	require.Equal(t, int64(1), d.compiled.Load())
	require.NoError(t, p.Compile(3, plusOne, of(3)))
	require.Equal(t, int64(1), d.compiled.Load(), "it is kept")

	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if i%2 == 0 {
				assert.NoError(t, p.Compile(5, plusOne, of(5)))
				return
			}
			_, err := p.Call(5, plusOne, of(5))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	require.Equal(t, int64(2), d.compiled.Load())
	require.NoError(t, p.Compile(6, plusOne, of(6)))
	require.Equal(t, 2, p.Len(), "there is no room for a third one")
	require.Equal(t, int64(2), d.live.Load())
}

// TestPrograms_CompileFails: the error is that of a call, and the next one tries again; also where a device compiles
// late.
func TestPrograms_CompileFails(t *testing.T) {
	broken := errors.New("broken")
	x := tensors.FromFlatDataAndDimensions([]float32{1, 2}, 2)
	for name, device := range map[string]func(fails *error) compute.Backend{
		"at once": func(fails *error) compute.Backend {
			return graphtest.HookedOn(graphtest.CPU(t), graphtest.Hooks{Compile: func() error { return *fails }})
		},
		"late": func(fails *error) compute.Backend { return &late{graphtest.CPU(t), fails} },
	} {
		fails := broken
		p := NewPrograms(device(&fails), 1<<20)
		ahead := p.Compile("key", plusOne, []any{x})
		require.ErrorIs(t, ahead, broken, name)
		_, err := p.Call("key", plusOne, []any{x})
		require.EqualError(t, ahead, err.Error(), name)
		fails = nil
		require.NoError(t, p.Compile("key", plusOne, []any{x}), name)
	}
}

// late is a device that compiles programs when they are ready or called, as one of XLA does.
type late struct {
	compute.Backend
	fails *error
}

func (d *late) Builder(name string) compute.Builder { return &lateBuilder{d.Backend.Builder(name), d} }

type lateBuilder struct {
	compute.Builder
	device *late
}

func (b *lateBuilder) Compile() (compute.Executable, error) {
	run, err := b.Builder.Compile()
	return &lateProgram{run, b.device}, err
}

type lateProgram struct {
	compute.Executable
	device *late
}

func (p *lateProgram) Ready() error { return *p.device.fails }

func (p *lateProgram) Execute([]compute.Buffer, []bool, compute.DeviceNum) ([]compute.Buffer, error) {
	return nil, p.Ready()
}

// TestPrograms_DonatedAfterError: when a call fails, before the program is compiled, while it is or when it runs, the
// memory that was donated is freed at once, each buffer one time, and other inputs stay. When it succeeds the device
// has taken it.
func TestPrograms_DonatedAfterError(t *testing.T) {
	broken := errors.New("broken")
	var fails bool
	var freed int
	device := graphtest.HookedOn(graphtest.Device(t), graphtest.Hooks{
		Run: func() error {
			if fails {
				return broken
			}
			return nil
		},
		Finalize: func() error { freed++; return nil },
	})
	vector := func() *tensors.Tensor {
		x, err := Upload(device, make([]float32, 2), 2)
		require.NoError(t, err)
		return x
	}
	build := func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.Add(in[0], in[2]), graph.AddScalar(in[1], 1)}
	}
	kept, p := vector(), NewPrograms(device, 1<<20)
	type builder = func(in []*graph.Node) []*graph.Node
	call := func(build builder, more ...any) (donated []compute.Buffer, err error) {
		in, err := Donate(device, []*tensors.Tensor{vector(), vector()})
		require.NoError(t, err)
		for _, x := range in {
			donated = append(donated, x.(Donated).buffer)
		}
		freed = 0
		_, err = p.Call("key", build, append(append(in, kept), more...))
		return donated, err
	}
	gone := func(buffers []compute.Buffer) {
		for _, b := range buffers {
			require.Error(t, b.ToFlatData(make([]float32, 2)), "it is gone")
		}
		require.Equal(t, []float32{0, 0}, tensors.MustCopyFlatData[float32](kept))
	}
	requireFreed := func(buffers []compute.Buffer) {
		require.Equal(t, len(buffers), freed)
		gone(buffers)
	}

	donated, err := call(build, 1)
	require.ErrorContains(t, err, "input 3 is a int")
	requireFreed(donated)
	donated, err = call(func([]*graph.Node) []*graph.Node { panic(broken) })
	require.ErrorIs(t, err, broken)
	requireFreed(donated)
	fails = true
	donated, err = call(build)
	require.ErrorIs(t, err, broken)
	requireFreed(donated)
	fails = false
	donated, err = call(build)
	require.NoError(t, err)
	require.Zero(t, freed)
	gone(donated)
	donated, err = call(build, kept)
	require.Error(t, err, "an input too many")
	requireFreed(donated)
	twice, err := Donate(device, []*tensors.Tensor{vector()})
	require.NoError(t, err)
	freed = 0
	_, err = p.Call("key", build, []any{twice[0], twice[0], 1})
	require.Error(t, err)
	requireFreed([]compute.Buffer{twice[0].(Donated).buffer})
}

// TestDonate_Error: when one of the tensors cannot be donated, all of them are freed.
func TestDonate_Error(t *testing.T) {
	device := graphtest.Device(t)
	list := make([]*tensors.Tensor, 3)
	buffers := make([]compute.Buffer, 3)
	for i := range list {
		var err error
		list[i], err = Upload(device, []float32{1}, 1)
		require.NoError(t, err)
		buffers[i], err = list[i].Buffer(device, 0)
		require.NoError(t, err)
	}
	list[1].MustFinalizeAll()
	_, err := Donate(device, list)
	require.Error(t, err)
	for _, b := range buffers {
		require.Error(t, b.ToFlatData(make([]float32, 1)))
	}
}

// TestProgramBytes: constants are counted, and what repeats one is not.
func TestProgramBytes(t *testing.T) {
	const n = 1 << 18
	compile := func(build func(x *graph.Node) *graph.Node) int64 {
		x := tensors.FromFlatDataAndDimensions(make([]float32, n), n)
		run, err := Compile(graphtest.CPU(t), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{build(in[0])}
		}, []shapes.Shape{x.Shape()})
		require.NoError(t, err)
		return ProgramBytes(run)
	}
	plain := compile(func(x *graph.Node) *graph.Node { return graph.AddScalar(x, 1) })
	require.Less(t, plain, int64(64<<10))
	constant := compile(func(x *graph.Node) *graph.Node {
		return graph.Add(x, graph.Const(x.Graph(), make([]float32, n)))
	})
	require.InDelta(t, 4*n, constant-plain, 8<<10)
}

// TestPrograms_Garbage: what compiling leaves is collected, though the heap has much else, as weights.
func TestPrograms_Garbage(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector touches all memory")
	}
	const left = 40 << 20 // by a compilation
	weights := make([]byte, 4<<30)
	runtime.GC()
	bytes := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	device, before, most := graphtest.Device(t), bytes(), int64(0)
	p := NewPrograms(device, 1<<30)
	for n := range 12 {
		_, err := p.Call(n, func(in []*graph.Node) []*graph.Node {
			runtime.KeepAlive(make([]byte, left))
			return plusOne(in)
		}, []any{tensors.FromValue(make([]float32, n+1))})
		require.NoError(t, err)
		most = max(most, bytes()-before)
	}
	require.Less(t, most, int64(4*left))
	runtime.KeepAlive(weights)
}
