package gemm

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// Group is one of several matmuls that are computed at once, such as that of some rows with the expert that they chose.
// Packed, if it is set, is the right operand in place of B, as [Kernels.MulPacked] takes it, or with Transposed as
// [Kernels.MulPackedT] does.
type Group struct {
	Matmul
	Packed     *Packed
	Transposed bool
}

// MulGroups computes matmuls of which none reads what another one writes, each with the bits that it has alone. The
// workers share them by their work: what is much of all is computed by all workers, matmuls of few rows are cut into
// tasks of some columns, and each of the others is a task.
func (k *Kernels) MulGroups(p *pool.Pool, list []Group) {
	var tasks groupTasks
	all := 0
	for i := range list {
		all += list[i].work()
	}
	for i := range list {
		g := list[i].call()
		if g.m == 0 || g.n == 0 {
			continue
		}
		k.prepare(&g)
		switch {
		case !g.ofIntegers() && !g.isLarge():
			tasks.few = append(tasks.few, g)
		case list[i].work()*groupShares*p.Workers() > all:
			k.whole(p, g)
		default:
			tasks.whole = append(tasks.whole, g)
		}
	}
	tasks.plan(p.Workers())
	if tasks.count > 0 {
		k.eachTask(p, tasks.count, func(s *scratch, i int) { tasks.run(k, s, i) })
	}
}

func (g *Group) work() int { return g.M * g.N * g.K }

func (g *Group) call() call {
	b := operand{view: g.B, packed: g.Packed, transposed: g.Transposed}
	return call{c: g.C, a: g.A, b: b, m: g.M, n: g.N, k: g.K, add: g.Add}
}

// groupTasks are the tasks of matmuls.
type groupTasks struct {
	whole []call // each is a task
	few   []call // those of few rows, which are cut
	ends  []int  // behind the last task of each of them
	count int
}

// plan cuts the matmuls of few rows. The largest tasks are the first ones.
func (t *groupTasks) plan(workers int) {
	slices.SortStableFunc(t.whole, func(a, b call) int { return b.m*b.n*b.k - a.m*a.n*a.k })
	t.count = len(t.whole)
	for i := range t.few {
		g := &t.few[i]
		g.plan = planOf(g, len(t.few), workers)
		g.tasks = g.down * g.across
		t.count += g.tasks
		t.ends = append(t.ends, t.count)
	}
}

// run computes a task.
func (t *groupTasks) run(k *Kernels, s *scratch, i int) {
	if i < len(t.whole) {
		k.whole(nil, t.whole[i])
		return
	}
	at, _ := slices.BinarySearch(t.ends, i+1)
	g := &t.few[at]
	g.task(s, i-(t.ends[at]-g.tasks))
}

// whole computes a matmul of integers, or a large one.
func (k *Kernels) whole(p *pool.Pool, g call) {
	if g.ofIntegers() {
		k.integers(p, g)
		return
	}
	k.large(p, g)
}
