package plan

import (
	"cmp"
	"os"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// freeOf returns a memory with so much free; 0 is not known.
func freeOf(bytes float64, device string) *Device {
	d := NewDevice(graphx.NamedProfile(device))
	d.Free = func() (int64, bool) { return int64(bytes), bytes > 0 }
	d.workers = 2
	return d
}

// book books sizes of a model in float32 that must fit.
func book(t *testing.T, d *Device, c *model.Config, want Sampling) Booking {
	want.Config, want.Matrices, want.CacheType = c, cmp.Or(want.Matrices, dtypes.Float32), dtypes.Float32
	b, ok := d.Book(want, Sizes{})
	require.True(t, ok, "%+v", want)
	return b
}

// TestBook: defaults fit into what is free, and are what they were where that is plenty.
func TestBook(t *testing.T) {
	const gib = 1 << 30
	long := *qwen
	long.MaxPositions = 1 << 20
	for _, c := range []struct {
		name    string
		config  *model.Config
		free    float64 // 0 is not known
		want    Sampling
		slots   int
		context int
		tokens  int // 0: of all slots
	}{
		{name: "tiny, plenty", config: tinyConfig(t), free: 8 * gib, slots: 32, context: 2048},
		{name: "tiny, little", config: tinyConfig(t), free: 400 << 20, slots: 32, context: 2048, tokens: 21391},
		{name: "tiny, very little", config: tinyConfig(t), free: 200 << 20, slots: 1, context: 1024},
		{name: "SmolLM2, plenty", config: smol, free: 64 * gib, slots: 32, context: 8192, tokens: 65536},
		{name: "SmolLM2, 16 GiB", config: smol, free: 16 * gib, slots: 32, context: 8192, tokens: 65536},
		{name: "SmolLM2, 4 GiB", config: smol, free: 4 * gib, slots: 32, context: 8192, tokens: 27949},
		{name: "Qwen3, plenty", config: qwen, free: 1024 * gib, slots: 32, context: 40960, tokens: 65536},
		{name: "Qwen3, 64 GiB", config: qwen, free: 64 * gib, slots: 32, context: 40960, tokens: 65536},
		{name: "Qwen3, 24 GiB", config: qwen, free: 24 * gib, slots: 32, context: 40960, tokens: 48244},
		{name: "Qwen3, 8 GiB", config: qwen, free: 8 * gib, slots: 32, context: 10240, tokens: 12501},
		{name: "Qwen3, 8 GiB, bfloat16", config: qwen, free: 8 * gib, slots: 32, context: 10240, tokens: 11980, want: Sampling{Matrices: dtypes.BFloat16}},
		{name: "Qwen3, 4 GiB", config: qwen, free: 4 * gib, slots: 1, context: 1280, tokens: 1280},
		{name: "a million tokens", config: &long, free: 24 * gib, slots: 32, context: 65536, tokens: 65536},
		{name: "Slots alone", config: qwen, free: 24 * gib, want: Sampling{Slots: 2}, slots: 2, context: 40960, tokens: 40960},
		{name: "Context alone", config: qwen, free: 24 * gib, want: Sampling{Context: 8192}, slots: 32, context: 8192, tokens: 48683},
		{name: "both, without room for training", config: qwen, free: 24 * gib, want: Sampling{Slots: 8, Context: 8192}, slots: 8, context: 8192, tokens: 16384},
		{name: "the cache alone", config: qwen, free: 24 * gib, want: Sampling{CacheTokens: 8192}, slots: 32, context: 8192, tokens: 8192},
		{name: "unknown", config: qwen, slots: 32, context: 20480, tokens: 26503},
		{name: "unknown, tiny", config: tinyConfig(t), slots: 32, context: 2048},
		{name: "unknown, both", config: qwen, want: Sampling{Slots: 32, Context: 40960}, slots: 32, context: 40960, tokens: 40960},
	} {
		m := freeOf(c.free, "cpu")
		p := book(t, m, c.config, c.want)
		t.Logf("%-34s %2d, %5d, %5d tokens: %+.0f, training %.0f", c.name, p.Slots, p.Context, p.CacheTokens, p.Memory,
			p.Training)
		tokens := cmp.Or(c.tokens, c.slots*c.context)
		assert.Equal(t, []int{c.slots, c.context, tokens}, []int{p.Slots, p.Context, p.CacheTokens}, c.name)
		if c.free > 0 {
			require.LessOrEqual(t, p.bytes, usable*c.free, c.name)
			require.LessOrEqual(t, p.Least(), usable*c.free, c.name)
		}
		require.Equal(t, p.bytes, m.taken)
		m.GiveBack(p)
		require.Zero(t, m.taken)
	}
}

// TestBook_Stored: models of 7B and 14B in the bytes of their files in Q4_K_M have room for training on machines that
// do not hold their weights in float32.
func TestBook_Stored(t *testing.T) {
	qwen2 := func(layers, hidden, heads, kv, mlp int) *model.Config {
		return &model.Config{
			ModelType: "qwen2", HiddenAct: "silu", VocabSize: 152064, HiddenSize: hidden, IntermediateSize: mlp,
			NumLayers: layers, NumHeads: heads, NumKVHeads: kv, HeadDim: 128, MaxPositions: 32768, RMSNormEps: 1e-6,
			RopeTheta: 1e6,
		}
	}
	for free, c := range map[float64]struct {
		config *model.Config
		held   float64
	}{
		14e9: {qwen2(28, 3584, 28, 4, 18944), 5.15e9},
		22e9: {qwen2(48, 5120, 40, 8, 13824), 9.82e9},
	} {
		want := Sampling{Config: c.config, Matrices: dtypes.Float32, CacheType: dtypes.Float32, Slots: 8}
		_, ok := freeOf(free, "cpu").Book(want, Sizes{})
		require.False(t, ok)
		want.WeightBytes = c.held
		b, ok := freeOf(free, "cpu").Book(want, Sizes{})
		require.True(t, ok)
		t.Logf("context %d, %d tokens: %+.0f, training %.0f", b.Context, b.CacheTokens, b.Memory, b.Training)
		require.Equal(t, c.held, b.Weights)
		require.GreaterOrEqual(t, b.Context, 1024)
		require.Less(t, b.Least()+b.Training, free)
		require.Positive(t, b.Training)
	}
}

// TestBook_Training: room is reserved for training as the options have it; where memory is short, for layers that are
// computed again, before the context is lowered.
func TestBook_Training(t *testing.T) {
	const gib = 1 << 30
	with := func(free float64, s Sizes) Booking {
		b, ok := freeOf(free, "cpu").Book(
			Sampling{Config: qwen, Matrices: dtypes.Float32, CacheType: dtypes.Float32}, s)
		require.True(t, ok)
		return b
	}
	estimate := func(s Sizes) float64 {
		n := 0.0
		for _, l := range qwen.Linears() {
			n += AdapterParams(lora.LayerShape(l), lora.DefaultRank)
		}
		s.Workers = 2
		m := Training{Config: qwen, On: graphx.NamedProfile("cpu"), Params: n}.Memory(s, reservedLength)
		return m.Adapter + m.Work + m.Programs
	}
	plain := with(64*gib, Sizes{})
	again := with(64*gib, Sizes{Recompute: true})
	require.Equal(t, estimate(Sizes{}), plain.Training)
	require.Equal(t, estimate(Sizes{Recompute: true}), again.Training)
	require.Less(t, again.Training, plain.Training/2)
	large := Sizes{MicroTokens: 8192, Recompute: true, Narrow: true}
	more := with(64*gib, large)
	require.Equal(t, estimate(large), more.Training)
	require.Greater(t, more.Training, again.Training)

	short := with(20*gib, Sizes{})
	require.False(t, plain.recompute)
	require.True(t, short.recompute)
	require.Equal(t, again.Training, short.Training)
	require.Equal(t, qwen.MaxPositions, short.Context)
}

// TestBook_SeveralBases: a base model has what those before it leave, also when the system still counts their memory as
// free.
func TestBook_SeveralBases(t *testing.T) {
	const free = 14 << 30
	m := freeOf(free, "cpu")
	first, second := book(t, m, smol, Sampling{}), book(t, m, smol, Sampling{})
	require.Less(t, second.CacheTokens, first.CacheTokens)
	require.LessOrEqual(t, first.bytes+second.bytes, usable*free)
	taken := m.taken
	refused, ok := m.Book(Sampling{
		Config: smol, Slots: 32, Context: 8192, CacheTokens: 32 * 8192, Matrices: dtypes.Float32, CacheType: dtypes.Float32,
	}, Sizes{})
	require.False(t, ok)
	require.Equal(t, taken, refused.Others)
	require.Equal(t, taken, m.taken)
	m.GiveBack(first)
	m.GiveBack(second)
	require.Equal(t, first, book(t, m, smol, Sampling{}))
}

// TestNewDevice: of a GPU nothing is known; XLA on the CPU has the machine's memory.
func TestNewDevice(t *testing.T) {
	for device, own := range map[string]bool{
		"cpu": false, "go": false, "xla:cpu": false, "xla:cpu,x=1": false, "xla:cuda": true, "xla": true,
		"xla:/plugin.so": true,
	} {
		_, want := machine.Free(os.DirFS("/"))
		_, known := NewDevice(graphx.NamedProfile(device)).Free()
		require.Equal(t, want && !own, known, device)
	}
}

// TestBook_GPU: the plan of a GPU follows its memory, and a training has what base models leave of it, the same every
// time.
func TestBook_GPU(t *testing.T) {
	unknown := book(t, NewDevice(graphx.NamedProfile("xla:cuda")), qwen, Sampling{})
	require.False(t, unknown.Known)
	last := 0
	for _, gib := range []float64{8, 12, 24, 48} {
		free := gib * (1 << 30)
		m := NewDevice(graphx.NamedProfile("xla:cuda"))
		m.Free = func() (int64, bool) { return int64(free), true }
		require.Equal(t, 1, m.workers)
		p := book(t, m, qwen, Sampling{})
		t.Logf("%.0f GiB: %d slots, context %d, %d tokens", gib, p.Slots, p.Context, p.CacheTokens)
		require.LessOrEqual(t, p.bytes, usable*free)
		require.Greater(t, p.CacheTokens, last)
		last = p.CacheTokens

		left, known := m.available(usable)
		require.True(t, known)
		require.InDelta(t, usable*free-p.Least(), left, 1)
		m.GiveBack(p)
		left, _ = m.available(usable)
		require.InDelta(t, usable*free, left, 1)
	}
	require.Greater(t, last, unknown.CacheTokens, "a large GPU was planned as one of 8 GiB")
}

// TestDevice_Fit: where what is free is too little, or sizes are lowered, all of it is tried; a GPU refuses nothing.
func TestDevice_Fit(t *testing.T) {
	for _, c := range []struct {
		device  string
		free    float64
		lowered bool
		takes   float64
		tries   []float64
		ok      bool
	}{
		{"cpu", 1000, false, 800, []float64{900}, true},
		{"cpu", 1000, true, 800, []float64{900, 1000}, true},
		{"cpu", 1000, false, 950, []float64{900, 1000}, true},
		{"cpu", 1000, false, 1001, []float64{900, 1000}, false},
		{"xla:cuda", 1000, true, 1001, []float64{900}, true},
		{"cpu", 0, false, 1, nil, true},
	} {
		var tries []float64
		_, _, ok := freeOf(c.free, c.device).Fit(func(bytes float64) (takes float64, lowered, ok bool) {
			tries = append(tries, bytes)
			return c.takes, c.lowered, c.takes <= bytes
		})
		require.Equal(t, c.ok, ok, "%+v", c)
		require.Equal(t, c.tries, tries, "%+v", c)
	}
}
