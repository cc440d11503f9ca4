// Package world makes small databases, and questions about them that one SQL query each answers.
//
// A database has three tables: people, things, and events in which a person has to do with a thing. It belongs to one
// of several lines of business, whose tables and columns have other names each; some of them are held out. Three
// conventions hold in all databases and no schema tells them: see [Convention]. Everything is a function of the seed.
package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
)

// World is a set of databases, and the questions of one level about them.
type World struct {
	// Train and Held are questions to train on, and those to measure with: of other lines of business, at level [Whole] of
	// other databases only.
	Train, Held []Question
	stores      []*Store
}

// How many databases of a line of business there are, to train on and held out, and how many questions are asked about
// each.
const (
	trainedDatabases = 4
	heldDatabases    = 5 // of those that are held out
	wholeDatabases   = 2 // of the others, at level Whole
	maxQuestions     = 12
)

// New makes the databases and the questions of a level. The caller closes the world.
func New(ctx context.Context, level int, seed uint64) (*World, error) {
	if len(kinds[level]) == 0 {
		return nil, fmt.Errorf("level is %d, want %d to %d", level, Whole, Grouped)
	}
	var makers []*maker
	for i := range domains {
		d := &domains[i]
		trained, held := trainedDatabases, 0
		switch {
		case d.held && level == Whole: // a model that knows no SQL cannot spell names that it has not seen
			trained = 0
		case d.held:
			trained, held = 0, heldDatabases
		case level == Whole:
			held = wholeDatabases
		}
		for j := range trained + held {
			rng := rand.New(rand.NewPCG(seed, uint64(100*i+j)))
			makers = append(makers, &maker{domain: d, database: j, held: j >= trained, rng: rng, level: level})
		}
	}
	var wait sync.WaitGroup
	todo := make(chan *maker)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for m := range todo {
				m.err = m.make(ctx)
			}
		})
	}
	for _, m := range makers {
		todo <- m
	}
	close(todo)
	wait.Wait()
	w := &World{}
	var failed error
	for _, m := range makers {
		failed = errors.Join(failed, m.err)
		if m.store != nil {
			w.stores = append(w.stores, m.store)
		}
		if m.held {
			w.Held = append(w.Held, m.questions...)
		} else {
			w.Train = append(w.Train, m.questions...)
		}
	}
	if failed != nil {
		return nil, errors.Join(failed, w.Close())
	}
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	for _, list := range [][]Question{w.Train, w.Held} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return w, nil
}

// Close frees the databases.
func (w *World) Close() error {
	var err error
	for _, s := range w.stores {
		err = errors.Join(err, s.Close())
	}
	return err
}

// maker makes a database and the questions about it.
type maker struct {
	domain   *domain
	database int
	held     bool
	rng      *rand.Rand
	level    int

	store     *Store
	questions []Question
	err       error
}

// maxTries is how many drafts of a kind may be of no use before another kind has its turn.
const maxTries = 60

// make fills the database and asks questions of each kind in turn.
func (m *maker) make(ctx context.Context) error {
	s := newSchema(m.domain, m.rng)
	statements, rows := s.fill(m.rng)
	var err error
	if m.store, err = open(ctx, statements); err != nil {
		return err
	}
	a := &asker{schema: s, rows: rows, rng: m.rng}
	asked := map[string]bool{}
	for i := 0; len(m.questions) < maxQuestions && i < 4*maxQuestions; i++ {
		kind := kinds[m.level][i%len(kinds[m.level])]
		for range maxTries {
			d := kind.draft(a)
			if asked[d.text] {
				continue
			}
			asked[d.text] = true
			q := Question{Kind: kind.name, Schema: s.text(d.table), Text: d.text, Names: d.names, Store: m.store}
			ok, err := q.answer(ctx, &d)
			if err != nil {
				return err
			}
			if ok {
				q.ID = fmt.Sprintf("%s %d, %d", m.domain.event.table, m.database, len(m.questions))
				m.questions = append(m.questions, q)
				break
			}
		}
	}
	return nil
}
