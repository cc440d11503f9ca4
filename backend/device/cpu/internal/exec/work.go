package exec

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// small is the work of a plan from which on a second worker is used. Less is done in 50 us, and to wake a worker takes
// longer; where other processes compete for the cores, the caller then waits for one that is not running.
const small = 1 << 18

// one is a pool of the caller alone.
var one = pool.New(1)

// poolFor returns the workers of a plan.
func poolFor(e *Env, p *ir.Plan) *pool.Pool {
	if work(p) < small {
		return one
	}
	return e.Pool
}

// work is what a run of a plan computes, roughly: elements times instructions of loops, and multiply-adds of matmuls.
func work(p *ir.Plan) int {
	sum := 0
	for _, s := range p.Steps {
		switch s := s.(type) {
		case *ir.Loop:
			sum += loopWork(s)
		case *ir.Attention:
			sum += loopWork(s.Loop) + matmulWork(s.First)
			if s.Second != nil {
				sum += matmulWork(s.Second)
			}
		case *ir.Matmul:
			sum += matmulWork(s)
		case *ir.SparseMatmul:
			sum += matmulWork(s.Matmul)
		case *ir.Grouped:
			sum += s.Out.Of.Count * s.X.Width
		case *ir.GroupedOuter:
			sum += s.Count * s.X.Width * s.Y.Width
		case *ir.DeltaRule:
			sum += deltaWork(&s.Tokens)
		case *ir.DeltaGradient:
			sum += 4 * deltaWork(&s.Tokens)
		}
	}
	return sum
}

func loopWork(l *ir.Loop) int { return l.Numel * l.Work }

func matmulWork(m *ir.Matmul) int { return m.Members() * m.A.Rows * m.B.Rows * m.Inner }
