package runs

import (
	"fmt"
	"time"

	"github.com/goart-dev/art"
	"github.com/parquet-go/parquet-go"
)

// entryColumns reads entries.
type entryColumns struct {
	group, trajectory, reward, start, duration, first, last column

	scenario, attempt, tries, kind, message, stack column // one value per failure of a group
}

func (c *entryColumns) all() map[string]*column {
	const failure = "group.failures.list.element."
	return map[string]*column{
		"group_index": &c.group, "trajectory_index": &c.trajectory, "reward": &c.reward, "start": &c.start,
		"duration_ns": &c.duration, "first_policy_step": &c.first, "last_policy_step": &c.last,
		failure + "scenario": &c.scenario, failure + "attempt": &c.attempt, failure + "tries": &c.tries,
		failure + "type": &c.kind, failure + "message": &c.message, failure + "stack": &c.stack,
	}
}

// entry reads the next row.
func (c *entryColumns) entry() (e Entry, err error) {
	var start, duration int
	for _, f := range [...]struct {
		column *column
		to     *int
		none   int
	}{
		{&c.group, &e.Group, 0}, {&c.trajectory, &e.Trajectory, -1}, {&c.start, &start, 0}, {&c.duration, &duration, 0},
		{&c.first, &e.FirstStep, -1}, {&c.last, &e.LastStep, -1},
	} {
		if *f.to, err = f.column.number(f.none); err != nil {
			return e, err
		}
	}
	reward, ok, err := c.reward.value()
	if err != nil {
		return e, err
	}
	if ok {
		e.Reward = reward.Double()
	}
	if start != 0 {
		e.Start = time.UnixMicro(int64(start)).UTC()
	}
	e.Duration = time.Duration(duration)
	e.Failures, err = c.failures()
	return e, err
}

// failures reads the failures of a row.
func (c *entryColumns) failures() (list []art.Failure, err error) {
	err = c.scenario.elements(func(_ int, v *parquet.Value) {
		list = append(list, art.Failure{Scenario: int(v.Int64())})
	})
	if err != nil {
		return nil, err
	}
	for _, f := range [...]struct {
		column *column
		set    func(f *art.Failure, v *parquet.Value)
	}{
		{&c.attempt, func(f *art.Failure, v *parquet.Value) { f.Attempt = int(v.Int64()) }},
		{&c.tries, func(f *art.Failure, v *parquet.Value) { f.Tries = int(v.Int64()) }},
		{&c.kind, func(f *art.Failure, v *parquet.Value) { f.Type = string(v.ByteArray()) }},
		{&c.message, func(f *art.Failure, v *parquet.Value) { f.Message = string(v.ByteArray()) }},
		{&c.stack, func(f *art.Failure, v *parquet.Value) { f.Stack = string(v.ByteArray()) }},
	} {
		n := 0
		err := f.column.elements(func(i int, v *parquet.Value) {
			if n++; i < len(list) {
				f.set(&list[i], v)
			}
		})
		if err != nil {
			return nil, err
		}
		if n != len(list) {
			return nil, fmt.Errorf("a row has %d scenarios of failures and %d other values", len(list), n)
		}
	}
	return list, nil
}
