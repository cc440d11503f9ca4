package transformers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/model"
)

// mutation is a change of config.json, and what transformers makes of it.
type mutation struct {
	Of      string // the key, or "spelled" or "foreign"
	Change  map[string]json.RawMessage
	Config  string  // the text of the file
	Outcome string  // "logits", "refused" or "undefined"
	Why     string  // of the last two
	Moved   float64 // how far the logits are from those of the unchanged file, relative to the largest
	Inert   string  // why the key has no effect, if it is listed so
	Dormant string  // why it may have none
}

// effects says of the keys of a family whether a change of them has an effect in transformers.
type effects map[string]bool

// note adds what a change shows. Settings of several keys, and those of other families, show nothing.
func (e effects) note(t *testing.T, m *mutation) {
	t.Helper()
	if m.Of == "spelled" || m.Of == "foreign" || m.Dormant != "" {
		return
	}
	moves := m.Outcome == "undefined" || m.Outcome == "logits" && m.Moved > 0
	misfit := m.Outcome == "refused" && !strings.Contains(m.Why, "Validation error") // such as weights of another size
	e[m.Of] = e[m.Of] || moves || misfit || m.Inert != ""
	if moves && m.Inert != "" {
		t.Errorf("%s has an effect, %.2g, and is listed as inert: %s", text(m.Change), m.Moved, m.Inert)
	}
}

// TestMutations: whatever key of config.json is changed, this library computes what transformers does, or refuses it.
func TestMutations(t *testing.T) {
	seen := map[string]effects{}
	for _, r := range deepOnes(t, "mutate.py", "mutations.json") {
		t.Run(r.Name, func(t *testing.T) {
			var list []mutation
			r.readJSON(t, "mutations.json", &list)
			if seen[r.Family] == nil {
				seen[r.Family] = effects{}
			}
			for i := range list {
				seen[r.Family].note(t, &list[i])
			}
			r.compare(t, list, readTensors(t, filepath.Join(r.Dir, "mutations.safetensors")))
		})
	}
	for family, keys := range seen {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !keys[key] {
				t.Errorf("%s: no change of %s has an effect: draw the feature, or list it in mutate.py", family, key)
			}
		}
	}
}

// leniency is a reason why a file that transformers refuses is computed.
type leniency struct {
	part string // of what the test says of it
	why  string
}

var lenient = []leniency{
	{"TypeError: Field", "transformers 5 takes no whole number for a decimal one, no text for either, and null for few keys"},
	{"KeyError: ''", "an empty text is as an absent key"},
	{"KeyError: None", "null is as an absent key"},
	{"={}: transformers", "an object that says nothing"},
	{"decoder_sparse_step=0", "as 1: every layer has experts"},
	{"mlp_layer_types", "a key of other families, which only transformers' check of all of them sees"},
}

// compare computes each change.
func (r *Record) compare(t *testing.T, list []mutation, found map[string][]float32) {
	scratch := t.TempDir()
	weights, err := filepath.Abs(filepath.Join(r.Dir, "model.safetensors"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(weights, filepath.Join(scratch, "model.safetensors")))
	count, ignored := map[string]int{}, map[string]bool{}
	for i, m := range list {
		got, v, err := r.mutated(t, scratch, m.Config)
		want, ok := found[fmt.Sprint(i)]
		if !ok {
			want = r.logits["base.0"]
		}
		said := fmt.Sprintf("%s: %s: transformers: %s %s", m.Of, text(m.Change), m.Outcome, m.Why)
		switch {
		case errors.Is(err, errPanic):
			t.Errorf("%s; here: %v", said, err)
		case err != nil && m.Outcome == "logits":
			count["refused"]++
			if m.Moved == 0 {
				ignored[strings.Join(slices.Sorted(maps.Keys(m.Change)), " and ")] = true
			}
		case err != nil:
			count["refused by both"]++
		case m.Outcome == "refused":
			count["refused by transformers alone"]++
			if m.Inert == "" && !slices.ContainsFunc(lenient, func(l leniency) bool { return strings.Contains(said, l.part) }) {
				t.Errorf("%s; here it is computed: refuse it, or list why not in lenient", said)
			}
		case m.Outcome == "undefined":
			t.Errorf("%s; here it is computed", said)
		default:
			count["equal"]++
			if gap := apart(want, got, v); gap > closeLogits {
				t.Errorf("%s; here the logits are %.2g away, the change moves them by %.2g", said, gap, m.Moved)
			}
		}
	}
	t.Logf("refused though transformers ignores some values: %s",
		strings.Join(slices.Sorted(maps.Keys(ignored)), ", "))
	t.Logf("%d changes: %v", len(list), count)
	results.add(r.Family, "changes of keys equal", count["equal"])
	results.add(r.Family, "refused", len(list)-count["equal"])
}

func text(change map[string]json.RawMessage) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(change)) {
		parts = append(parts, key+"="+string(change[key]))
	}
	return strings.Join(parts, ", ")
}

var errPanic = errors.New("it panics")

// mutated computes logprobs with another config.json.
func (r *Record) mutated(t *testing.T, dir, config string) (logprobs []float32, v int, err error) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, model.ConfigFile), []byte(config), 0o644))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	w, err := model.Load(dir)
	if err != nil {
		return nil, 0, err
	}
	logprobs, err = upload(t, w).logprobs(nil, r.Rows[0])
	return logprobs, w.Config.VocabSize, err
}
