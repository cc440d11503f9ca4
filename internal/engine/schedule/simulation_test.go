package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// device is a device whose cache holds the tokens themselves. 0 is an empty position, which no task may see.
type device struct {
	t     *testing.T
	rng   *rand.Rand
	sched *Scheduler
	cache [][]int32
	said  map[*Task][]int32 // prompt and reply of each running task
	left  int               // tasks that have not ended
}

// place carries out all placements.
func (d *device) place() {
	for p, ok := d.sched.Place(); ok; p, ok = d.sched.Place() {
		d.said[p.Task] = slices.Clone(p.Task.Prompt)
		if p.Copy {
			copied := slices.Clone(d.cache[p.From][:p.Task.Reused])
			clear(d.cache[p.Slot])
			copy(d.cache[p.Slot], copied)
		}
	}
}

// compute checks that a row sees exactly what its task has said, and caches its tokens.
func (d *device) compute(row Row) {
	said := d.said[row.Task]
	require.Equal(d.t, said[:row.Start], d.cache[row.Slot][:row.Start])
	require.Equal(d.t, said[row.Start:row.Start+len(row.Tokens)], row.Tokens)
	for _, id := range d.cache[row.Slot][row.Start:] {
		require.Zero(d.t, id, "tokens of another task")
	}
	copy(d.cache[row.Slot][row.Start:], row.Tokens)
}

// sample appends a token, and ends the reply at random and at its limit. It reports whether the reply has ended.
func (d *device) sample(row Row) bool {
	said := append(d.said[row.Task], 1+int32(d.rng.IntN(2)))
	d.said[row.Task] = said
	room := d.sched.Room(row.Slot)
	require.Equal(d.t, row.Task.Limit-len(said), room)
	if room == 0 || d.rng.IntN(20) == 0 {
		d.end(row.Slot, row.Task)
		return true
	}
	d.sched.Push(row.Slot, said[len(said)-1])
	return false
}

// end ends a reply.
func (d *device) end(slot int, task *Task) {
	d.sched.Finish(slot)
	delete(d.said, task)
	d.left--
}

// run carries out a round.
func (d *device) run(r Round) {
	for _, row := range r.Rows {
		d.compute(row)
	}
	for _, row := range r.Rows {
		if !r.Decode {
			if d.sched.Computed(row.Slot, len(row.Tokens)) {
				d.sample(row)
			}
			continue
		}
		for n := range row.Samples {
			d.cache[row.Slot][row.Start+n] = 3 // the device goes on after the end of a reply
		}
		for n := range row.Samples {
			d.sched.Computed(row.Slot, 1)
			d.cache[row.Slot][row.Start+n] = d.said[row.Task][row.Start+n]
			if d.sample(row) {
				if n+1 < row.Samples {
					d.sched.Overrun(row.Slot)
				}
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
	d.sched.Drop(func(*Task) bool {
		gone := d.rng.IntN(100) == 0
		if gone {
			d.left--
		}
		return gone
	})
	if d.rng.IntN(200) == 0 {
		d.sched.Lost()
		for _, c := range d.cache {
			clear(c)
		}
	}
}

// TestScheduler_Simulation: with random conversations, cancellations, failures and calls that decode too much, each
// task sees its own tokens and no others, every task ends, and no slot waits much longer than patience.
func TestScheduler_Simulation(t *testing.T) {
	const context, tasks = 64, 400
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		opts := Options{Slots: 1 + rng.IntN(6), Widths: Sizes{1, 4, 8}, Steps: []int{1, 5}[seed%2]}
		d := &device{t: t, rng: rng, sched: New(opts), said: map[*Task][]int32{}, left: tasks}
		for range opts.Slots {
			d.cache = append(d.cache, make([]int32, context+opts.Steps))
		}
		for submitted := 0; d.left > 0; {
			for submitted < tasks && rng.IntN(3) == 0 {
				prompt := make([]int32, 1+rng.IntN(context-1))
				for i := range prompt {
					prompt[i] = 1 + int32(rng.IntN(20)/19)
				}
				d.sched.Submit(&Task{
					Prompt: prompt, Adapter: []any{nil, "a"}[rng.IntN(2)], Limit: len(prompt) + 1 + rng.IntN(context-len(prompt)),
				})
				submitted++
			}
			d.interrupt()
			d.place()
			if r, ok := d.sched.Next(); ok {
				d.run(r)
			}
			for i := range d.sched.slots {
				require.LessOrEqual(t, d.sched.slots[i].waited, patience+opts.Slots, "seed %d", seed)
			}
		}
		require.True(t, d.sched.Idle(), "seed %d", seed)
	}
}
