package devicebench

import (
	"time"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/machine"
)

// Effort says how much is measured.
type Effort struct {
	ReadBytes int64         // bytes that are read; 0: far more than the caches hold
	Size      int           // rows and columns of the matrices that are multiplied
	Budget    time.Duration // of each measurement
}

// Usual takes 2 to 3 seconds.
var Usual = Effort{Size: 1024, Budget: time.Second / 2}

// Speeds are what a machine reaches with one worker and with all, each the best of several runs.
type Speeds struct {
	ReadBytes int64   `json:"read_bytes"` // size of what was read
	ReadOne   float64 `json:"read_one_worker_gb_per_s"`
	Read      float64 `json:"read_gb_per_s"`
	Size      int     `json:"gemm_size"`
	GEMMOne   float64 `json:"gemm_one_worker_gflop_per_s"`
	GEMM      float64 `json:"gemm_gflop_per_s"`
}

// readSize is far more than the caches hold, and at most a quarter of the available memory.
func readSize(f machine.Facts) int64 {
	size := max(512<<20, 4*f.Cache)
	for _, memory := range []int64{f.Available, f.Limit} {
		if memory > 0 {
			size = min(size, memory/4)
		}
	}
	return min(size, 4<<30)
}

// Measure measures a machine. say is called with what is being measured.
func (e Effort) Measure(f machine.Facts, say func(what string)) (*Speeds, error) {
	if e.ReadBytes == 0 {
		e.ReadBytes = readSize(f)
	}
	one, err := cpu.New(&cpu.Options{Workers: 1})
	if err != nil {
		return nil, err
	}
	defer one.Finalize()
	all, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	defer all.Finalize()
	s := &Speeds{ReadBytes: e.ReadBytes, Size: e.Size}
	say("reading memory")
	if s.ReadOne, s.Read, err = e.reads(one, all); err != nil {
		return nil, err
	}
	say("multiplying matrices")
	if s.GEMMOne, err = e.gemm(one); err != nil {
		return nil, err
	}
	s.GEMM, err = e.gemm(all)
	return s, err
}

// reads measures memory bandwidth, in GB/s: of one worker and of all.
func (e Effort) reads(one, all *cpu.Device) (slow, fast float64, err error) {
	x := make([]float32, e.ReadBytes/4)
	for i := 0; i < len(x); i += 1024 {
		x[i] = 1 // a page is allocated when it is written; before that, all are the same page of zeros
	}
	rate := func(d *cpu.Device) (float64, error) {
		t, err := measure(e.Budget, 1, func() error { d.Read(x); return nil })
		if err != nil {
			return 0, err
		}
		return perSecond(float64(4*len(x)), t.best()), nil
	}
	if slow, err = rate(one); err != nil {
		return 0, 0, err
	}
	fast, err = rate(all)
	return slow, fast, err
}

// gemm measures a square matmul, in GFLOP/s.
func (e Effort) gemm(device compute.Backend) (float64, error) {
	j := plainMatmul(e.Size, e.Size, e.Size)
	p, err := compile(device, j)
	if err != nil {
		return 0, err
	}
	defer p.close()
	t, err := measure(e.Budget, 1, p.once)
	if err != nil {
		return 0, err
	}
	return perSecond(j.flops, t.best()), nil
}
