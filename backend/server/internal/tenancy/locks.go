package tenancy

import "sync"

// Locks are mutexes by name: who works on one thing keeps out only those who want the same. The zero value is ready.
type Locks struct {
	mu     sync.Mutex
	byName map[string]*lock
}

// lock is one of them, for as long as somebody holds it or waits for it.
type lock struct {
	sync.Mutex
	users int
}

// Lock locks a name, and returns what unlocks it.
func (l *Locks) Lock(name string) (unlock func()) {
	l.mu.Lock()
	if l.byName == nil {
		l.byName = map[string]*lock{}
	}
	one := l.byName[name]
	if one == nil {
		one = &lock{}
		l.byName[name] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.byName, name)
		}
	}
}
