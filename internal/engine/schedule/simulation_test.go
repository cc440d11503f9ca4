package schedule

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// device is a device whose cache holds the tokens themselves.
type device struct {
	t     *testing.T
	rng   *rand.Rand
	sched *Scheduler
	opts  Options
	cache []int32           // each tokens for each block
	said  map[*Task][]int32 // prompt and reply of each task that has not ended
	left  int               // tasks that have not ended
}

// place carries out all placements.
func (d *device) place() {
	for p, ok := d.sched.Place(); ok; p, ok = d.sched.Place() {
		if p.Copy {
			copy(d.block(p.To), d.block(p.From))
		}
		b := d.sched.slots[p.Slot]
		require.Same(d.t, p.Task, b.task)
		require.Equal(d.t, d.said[p.Task], b.tokens, "a task goes on with what it has")
		require.Equal(d.t, b.tokens[:b.computed], d.read(b.table, b.computed), "what is cached")
	}
}

func (d *device) block(i int32) []int32 { return d.cache[int(i)*d.opts.Each:][:d.opts.Each] }

// read returns the first n tokens of some blocks.
func (d *device) read(blocks []int32, n int) (tokens []int32) {
	for _, b := range blocks {
		tokens = append(tokens, d.block(b)...)
	}
	return tokens[:n]
}

// write caches tokens from a position on, in blocks that no other sequence reads.
func (d *device) write(row Row, at int, tokens ...int32) {
	for i, id := range tokens {
		n := (at + i) / d.opts.Each
		d.block(row.Blocks[n])[(at+i)%d.opts.Each] = id
		require.Equal(d.t, 1, d.sched.slots[row.Slot].path[n].refs, "a block that others read is written")
	}
}

// sample appends a token, and ends the reply at random and at its limit. It reports whether the reply has ended.
func (d *device) sample(row Row) bool {
	said := append(d.said[row.Task], 1+int32(d.rng.IntN(2)))
	d.said[row.Task] = said
	room := d.sched.Room(row.Slot)
	require.Equal(d.t, row.Task.Limit-len(said), room)
	if room == 0 || d.rng.IntN(60) == 0 {
		d.end(row.Slot, row.Task)
		return true
	}
	d.sched.Push(row.Slot, said[len(said)-1])
	return false
}

// end ends a reply, of which now and then the numbers were damaged.
func (d *device) end(slot int, task *Task) {
	if d.rng.IntN(30) == 0 {
		for _, b := range d.sched.Discard(slot) {
			require.False(d.t, d.sched.tree.blocks.taken[b])
			clear(d.block(b))
		}
	} else {
		d.sched.Finish(slot)
	}
	delete(d.said, task)
	d.left--
}

// run carries out a round.
func (d *device) run(r Round) {
	for _, row := range r.Rows {
		said := d.said[row.Task]
		require.Equal(d.t, said[:row.Start], d.read(row.Blocks, row.Start))
		require.Equal(d.t, said[row.Start:row.Start+len(row.Tokens)], row.Tokens)
		d.write(row, row.Start, row.Tokens...)
	}
	for _, row := range r.Rows {
		if !r.Decode {
			if d.sched.Computed(row.Slot, len(row.Tokens)) {
				d.sample(row)
			}
			continue
		}
		for n := range row.Samples {
			d.write(row, row.Start+n, 3) // the device goes on after the end of a reply
		}
		for n := range row.Samples {
			d.write(row, row.Start+n, d.said[row.Task][row.Start+n])
			d.sched.Computed(row.Slot, 1)
			if d.sample(row) {
				break
			}
		}
	}
}

// interrupt cancels tasks and loses the cache, now and then.
func (d *device) interrupt() {
	d.sched.Running(func(slot int, task *Task) {
		if d.rng.IntN(100) == 0 {
			d.end(slot, task)
		}
	})
	d.sched.Drop(func(task *Task) bool {
		gone := d.rng.IntN(100) == 0
		if gone {
			delete(d.said, task)
			d.left--
		}
		return gone
	})
	if d.rng.IntN(200) == 0 {
		d.sched.Lost()
		clear(d.cache)
	}
}

// check checks that blocks are counted exactly, that nothing waits for long that runs, and that the queue is in order.
func (d *device) check() {
	refs, reachable := map[*node]int{}, map[int32]bool{}
	for _, b := range d.sched.slots {
		if b == nil {
			continue
		}
		refs[b.root]++
		for i, n := range b.path {
			refs[n]++
			reachable[n.block] = true
			require.Equal(d.t, n.block, b.table[i])
		}
		if len(b.pending()) == 1 && d.opts.Steps == 1 {
			require.LessOrEqual(d.t, b.waited, 8, "three adapters decode in turns, and with prompts")
		}
	}
	idle, leaves := 0, 0
	var walk func(n *node)
	walk = func(n *node) {
		require.Equal(d.t, refs[n], n.refs)
		if n.parent != nil {
			reachable[n.block] = true
			if n.refs == 0 {
				idle++
				if len(n.children) == 0 {
					leaves++
				}
			}
		}
		for id, list := range n.children {
			for _, c := range list {
				require.Equal(d.t, id, c.tokens[0])
				require.True(d.t, n.parent == nil || len(n.tokens) == d.opts.Each, "only whole blocks have successors")
				walk(c)
			}
		}
	}
	for _, r := range d.sched.tree.roots {
		require.True(d.t, r.refs > 0 || len(r.children) > 0, "an adapter is kept for nothing")
		walk(r)
	}
	free, cached := d.sched.Blocks()
	require.Equal(d.t, idle, cached)
	require.Len(d.t, d.sched.tree.leaves, leaves)
	require.Equal(d.t, d.opts.Blocks-1, free+len(reachable))
	for b := range reachable {
		require.True(d.t, d.sched.tree.blocks.taken[b])
	}
	require.True(d.t, slices.IsSortedFunc(d.sched.waiting, func(a, b *Task) int { return a.arrival - b.arrival }))
}

// oldest returns the running or waiting task that arrived first, and the number of its tokens that are computed.
func (d *device) oldest() (task *Task, computed int) {
	for t := range maps.Keys(d.said) {
		if task == nil || t.arrival < task.arrival {
			task = t
		}
	}
	for _, b := range d.sched.slots {
		if b != nil && b.task == task {
			computed = b.computed
		}
	}
	return task, computed
}

// TestScheduler_Simulation: with random conversations, adapters, cancellations, failures and a cache that is too small
// for what runs, each task sees its own tokens and no others, blocks are counted exactly, the oldest task always goes
// on, and every task ends.
func TestScheduler_Simulation(t *testing.T) {
	const context, tasks = 64, 120
	var sum Stats
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		each := 1 + rng.IntN(9)
		opts := Options{
			Slots: 1 + rng.IntN(6), Widths: Sizes{1, 4, 8}, Steps: []int{1, 5}[seed%2], Each: each, Budget: 1 + rng.IntN(40),
		}
		opts.Blocks = 1 + blocksOf(context, each) + rng.IntN(2*context/each)
		d := &device{t: t, rng: rng, sched: New(opts), opts: opts, said: map[*Task][]int32{}, left: tasks}
		d.cache = make([]int32, opts.Blocks*each)
		before, computed, stuck := (*Task)(nil), 0, 0
		for submitted := 0; d.left > 0; {
			for submitted < tasks && rng.IntN(3) == 0 {
				prompt := make([]int32, 1+rng.IntN(context-1))
				for i := range prompt {
					prompt[i] = 1 + int32(rng.IntN(20)/19)
				}
				task := &Task{
					Prompt: prompt, Adapter: []any{nil, "a", "b"}[rng.IntN(3)], Single: rng.IntN(4) == 0,
					Limit: len(prompt) + 1 + rng.IntN(context-len(prompt)),
				}
				d.said[task] = slices.Clone(prompt)
				d.sched.Submit(task)
				submitted++
			}
			d.interrupt()
			d.place()
			if r, ok := d.sched.Next(); ok {
				d.check()
				d.run(r)
			}
			d.check()
			now, n := d.oldest()
			if stuck++; now != before || n != computed {
				before, computed, stuck = now, n, 0
			}
			require.Less(t, stuck, 20, "seed %d: the oldest task does not go on", seed)
		}
		require.True(t, d.sched.Idle(), "seed %d", seed)
		stats := d.sched.Stats()
		sum.Preempted, sum.Evicted = sum.Preempted+stats.Preempted, sum.Evicted+stats.Evicted
		sum.Copied, sum.Reused = sum.Copied+stats.Copied, sum.Reused+stats.Reused
	}
	t.Logf("%+v", sum)
	require.True(t, min(sum.Preempted, sum.Evicted, sum.Copied, sum.Reused) > 20, "%+v", sum)
}
