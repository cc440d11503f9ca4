package tenancy

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// Budget bounds the bytes that a tenant holds of one kind: in a queue, or on disk. It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	held  int64
	limit int64
}

// NewBudget returns a budget of which nothing is held.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Limit is what may be held.
func (b *Budget) Limit() int64 { return b.limit }

// Held is what is held now.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Take takes n bytes if that leaves at least rest, and reports whether it did.
func (b *Budget) Take(n, rest int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held > b.limit-rest-n {
		return false
	}
	b.held += n
	return true
}

// Add counts bytes that are there already: from before a restart, or of a size that is known only afterwards. A
// negative n gives bytes back.
func (b *Budget) Add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n
}

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

// maxName bounds a name, in bytes: a file has room for an ending.
const maxName = 100

// CheckName refuses a name of a tenant's that cannot be that of a file everywhere, or not part of a path or an address:
// each becomes one.
func CheckName(name string) error {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%.80q has %d bytes, want 1 to %d; %s", name, len(name), maxName, allowed)
	case !utf8.ValidString(name), strings.ContainsFunc(name, unfit):
		return fmt.Errorf("%.80q has a character that a name cannot have; %s", name, allowed)
	case name[0] == '.', strings.HasSuffix(name, "."), strings.TrimSpace(name) != name:
		return fmt.Errorf("%.80q begins or ends with a dot or a space; %s", name, allowed)
	case slices.Contains(devices, strings.TrimSpace(stem)):
		return fmt.Errorf("%.80q is a device on Windows; choose another name", name)
	}
	return nil
}

const allowed = "use letters, digits, - and _, and dots within it"

// unfit reports whether a name cannot have a character: separators, what Windows or an address gives a meaning, and
// what is not printed. What was no UTF-8 in JSON is read as the replacement character.
func unfit(r rune) bool {
	return strings.ContainsRune(`/\@:*?"<>|%#`, r) || r == utf8.RuneError || !unicode.IsPrint(r)
}

// devices are names that Windows keeps, with any ending.
var devices = strings.Fields("con prn aux nul conin$ conout$ com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 com¹ " +
	"com² com³ lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9 lpt¹ lpt² lpt³")

// Public is the text of an error for tenants: without paths of the server, and of errors of its files without more than
// what kind they are.
func Public(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	var damage *DamageError
	switch {
	case errors.As(err, &damage):
		return damage.Error()
	case stable.IsFull(err):
		return "the server's disk is full; try again when its operator has freed some space"
	case errors.As(err, &path), errors.As(err, &link), errors.Is(err, art.ErrStorage), errors.Is(err, art.ErrCorrupt):
		return "the server could not read or write its files; its log has the details"
	}
	return absolutePath.ReplaceAllString(err.Error(), "${1}a file of the server")
}

// absolutePath is a path from the root, or from a drive, of at least two names. What follows a colon or a slash is part
// of an address.
var absolutePath = regexp.MustCompile(`(^|[\s"'(=,\[])` +
	`(?:(?:[A-Za-z]:)?[\\/]+[^\\/\s"'(),:;]+(?:[\\/]+[^\\/\s"'(),:;]*)+|[A-Za-z]:\\[^\s"'(),:;]*)`)

// MaxAttempts is how often an operation is begun that has never ended: it may be what ends the process.
const MaxAttempts = 3

// errInternal is what a tenant reads of a panic.
var errInternal = errors.New("the server failed in this operation, by a fault of its own; its log has the details")

// ErrAttempts is the error of an operation that was begun [MaxAttempts] times.
var ErrAttempts = fmt.Errorf("the server has stopped %d times while it executed this, so that it is not begun again",
	MaxAttempts)

// Recovered calls f, and makes an error of a panic. The log has the panic with its stack; the error has neither, since
// tenants read it.
func Recovered(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic", "in", what, "panic", v, "stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	return f()
}

// IsPanic reports whether an error is that of a panic.
func IsPanic(err error) bool { return errors.Is(err, errInternal) }
