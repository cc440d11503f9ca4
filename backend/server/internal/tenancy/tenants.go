package tenancy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
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
