package main

import (
	"time"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
)

// effort is how much is measured.
type effort struct {
	read   int64         // bytes that are read; 0: far more than the caches hold
	cube   int           // rows and columns of the matrices that are multiplied
	budget time.Duration // of each measurement
}

// usual takes 2 to 3 seconds.
var usual = effort{cube: 1024, budget: time.Second / 2}

// speeds are the rates of a machine, each the best of several.
type speeds struct {
	ReadBytes int64   `json:"read_bytes"` // size of what was read
	ReadOne   float64 `json:"read_one_worker_gb_per_s"`
	Read      float64 `json:"read_gb_per_s"`
	Cube      int     `json:"gemm_size"`
	GEMMOne   float64 `json:"gemm_one_worker_gflop_per_s"`
	GEMM      float64 `json:"gemm_gflop_per_s"`
}

// readSize is far more than the caches hold, and at most a quarter of the memory that is available.
func (m machine) readSize() int64 {
	size := max(512<<20, 4*m.cache)
	for _, memory := range []int64{m.MemoryAvailable, m.CgroupMemory} {
		if memory > 0 {
			size = min(size, memory/4)
		}
	}
	return min(size, 4<<30)
}

// speeds measures a machine.
func (e effort) speeds(m machine, p progress) (*speeds, error) {
	if e.read == 0 {
		e.read = m.readSize()
	}
	defer p.say("")
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
	s := &speeds{ReadBytes: e.read, Cube: e.cube}
	p.say("reading memory")
	if s.ReadOne, s.Read, err = e.reads(one, all); err != nil {
		return nil, err
	}
	p.say("multiplying matrices")
	if s.GEMMOne, err = e.gemm(one); err != nil {
		return nil, err
	}
	s.GEMM, err = e.gemm(all)
	return s, err
}

// reads measures the rate at which devices read memory, in GB/s.
func (e effort) reads(one, all *cpu.Device) (slow, fast float64, err error) {
	x := make([]float32, e.read/4)
	for i := 0; i < len(x); i += 1024 {
		x[i] = 1 // the system gives a page when it is written; before, all are one page of zeros
	}
	rate := func(d *cpu.Device) (float64, error) {
		t, err := measure(e.budget, 1, func() error { d.Read(x); return nil })
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

// gemm measures a product of matrices, in GFLOP/s.
func (e effort) gemm(device compute.Backend) (float64, error) {
	j := plainProduct(e.cube, e.cube, e.cube)
	p, err := compile(device, j)
	if err != nil {
		return 0, err
	}
	defer p.close()
	t, err := measure(e.budget, 1, p.once)
	if err != nil {
		return 0, err
	}
	return perSecond(j.flops, t.best()), nil
}
