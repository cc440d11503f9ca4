package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestFor_EachOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		p := New(workers)
		for _, n := range []int{0, 1, 2, 3, 100, 1001} {
			counts := make([]atomic.Int32, n)
			p.For(n, func(i int) { counts[i].Add(1) })
			for i := range counts {
				if c := counts[i].Load(); c != 1 {
					t.Fatalf("%d workers, n %d: iteration %d ran %d times", workers, n, i, c)
				}
			}
		}
		p.Close()
	}
}

// No pool is one worker.
func TestFor_Nil(t *testing.T) {
	var p *Pool
	sum := 0
	p.For(10, func(i int) { sum += i })
	if sum != 45 || p.Workers() != 1 {
		t.Errorf("the sum is %d, want 45, by %d workers, want 1", sum, p.Workers())
	}
}

// Loops in loops, from several goroutines at once.
func TestFor_Nests(t *testing.T) {
	p := New(3)
	defer p.Close()
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p.For(10, func(int) { p.For(10, func(int) { p.For(10, func(i int) { sum.Add(int64(i)) }) }) })
		})
	}
	wg.Wait()
	if want := int64(8 * 100 * 45); sum.Load() != want {
		t.Errorf("the sum is %d, want %d", sum.Load(), want)
	}
}

func TestFor_Panic(t *testing.T) {
	p := New(4)
	defer p.Close()
	for range 200 {
		var running atomic.Int32
		func() {
			defer func() {
				if value := recover(); value != "seven" {
					t.Fatalf("recovered %v", value)
				}
				if running.Load() != 0 {
					t.Fatal("For returned while a call runs")
				}
			}()
			p.For(100, func(i int) {
				running.Add(1)
				defer running.Add(-1)
				if i == 7 {
					panic("seven")
				}
			})
		}()
		var n atomic.Int32
		p.For(50, func(int) { n.Add(1) })
		if n.Load() != 50 {
			t.Fatal("the pool is broken after a panic")
		}
	}
}

func TestFor_Closed(t *testing.T) {
	p := New(4)
	p.Close()
	n := 0
	var mu sync.Mutex
	p.For(10, func(int) { mu.Lock(); n++; mu.Unlock() })
	if n != 10 {
		t.Errorf("%d of 10 iterations ran", n)
	}
}

func BenchmarkFor_Empty(b *testing.B) {
	p := New(0)
	defer p.Close()
	for b.Loop() {
		p.For(p.Workers(), func(int) {})
	}
}

// How long it takes until all workers are in a loop that follows another one.
func BenchmarkFor_Meeting(b *testing.B) {
	p := New(0)
	defer p.Close()
	n := p.Workers()
	for b.Loop() {
		var here atomic.Int64
		p.For(n, func(int) {
			for here.Add(1); here.Load() < int64(n); {
				runtime.Gosched()
			}
		})
	}
}
