package chat

import (
	"errors"
	"strings"
)

// objectWriter writes a JSON object, its members in the order in which they are added.
type objectWriter struct {
	members []string
	keys    map[string]bool
}

// add adds a member, whose value is JSON. It is an error if the key is repeated.
func (w *objectWriter) add(key, value string) error {
	if w.keys[key] {
		return errors.New("it is repeated")
	}
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
	w.members = append(w.members, quote(key)+": "+value)
	return nil
}

func (w *objectWriter) empty() bool { return len(w.members) == 0 }

// String returns the object.
func (w *objectWriter) String() string { return "{" + strings.Join(w.members, ", ") + "}" }
