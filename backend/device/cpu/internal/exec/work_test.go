package exec

import (
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// A plan has the workers of the device from so much work on, whatever step it is in.
func TestPoolFor(t *testing.T) {
	e := &Env{Pool: pool.New(2)}
	defer e.Pool.Close()
	side := func(n int) *ir.Matmul {
		return &ir.Matmul{A: ir.Operand{Rows: n}, B: ir.Operand{Rows: n}, Inner: n}
	}
	for _, c := range []struct {
		name  string
		small bool
		steps []ir.Step
	}{
		{"nothing", true, nil},
		{"small loop", true, []ir.Step{&ir.Loop{Numel: 1 << 14, Work: 4}}},
		{"large loop", false, []ir.Step{&ir.Loop{Numel: 1 << 16, Work: 4}}},
		{"small loops", false, []ir.Step{&ir.Loop{Numel: 1 << 15, Work: 4}, &ir.Loop{Numel: 1 << 15, Work: 4}}},
		{"small matmul", true, []ir.Step{side(32)}},
		{"large matmul", false, []ir.Step{side(64)}},
		{"attention", false, []ir.Step{&ir.Attention{First: side(32), Loop: &ir.Loop{}, Second: side(64)}}},
	} {
		if got := poolFor(e, &ir.Plan{Steps: c.steps}) == one; got != c.small {
			t.Errorf("%s: alone %v, want %v", c.name, got, c.small)
		}
	}
}
