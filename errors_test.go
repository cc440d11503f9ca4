package art_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func TestError_Error(t *testing.T) {
	e := &art.Error{Op: "train", Err: fmt.Errorf("%w: %q", art.ErrFrozen, "m")}
	wantEqual(t, "without hint", e.Error(), `art: train: model is frozen: "m"`)
	e.Hint = "thaw it"
	wantEqual(t, "with hint", e.Error(), `art: train: model is frozen: "m" (thaw it)`)
}

// TestError_PrefixOnce: however errors are nested, the prefix is printed once, and an op or a hint is not repeated.
func TestError_PrefixOnce(t *testing.T) {
	lines := &art.Error{Op: "jsonl", Err: fmt.Errorf("x.jsonl:3: %w", art.ErrInvalid), Hint: "one value a line"}
	judge := func(s string) error { return &art.Error{Op: "judge", Err: errors.New(s)} }
	wrap := func(op string, err error) error { return &art.Error{Op: op, Err: err} }
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"direct", "art: sft: jsonl: x.jsonl:3: invalid argument (one value a line)", wrap("sft", lines)},
		{"wrapped", "art: sft: epoch 2: jsonl: x.jsonl:3: invalid argument (one value a line)",
			wrap("sft", fmt.Errorf("epoch 2: %w", lines))},
		{"same op", "art: jsonl: x.jsonl:3: invalid argument (one value a line)", wrap("jsonl", lines)},
		{"same hint", "art: sft: jsonl: x.jsonl:3: invalid argument (one value a line)",
			&art.Error{Op: "sft", Err: lines, Hint: "one value a line"}},
		{"three deep", "art: auto: judge: jsonl: x.jsonl:3: invalid argument (one value a line)",
			wrap("auto", fmt.Errorf("judge: %w", wrap("judge", lines)))},
		{"several", "art: gather: too many: judge: a; judge: b; judge: a",
			wrap("gather", fmt.Errorf("too many: %w; %w; %w", judge("a"), judge("b"), judge("a")))},
		{"joined", "art: close: judge: a\njudge: b", wrap("close", errors.Join(judge("a"), judge("b")))},
		{"text of others", "art: run: the log says: art: broken", wrap("run", errors.New("the log says: art: broken"))},
	} {
		wantEqual(t, test.name, test.err.Error(), test.want)
	}
}

// TestComplete_ManyProblems: an error lists 20 problems and counts the others.
func TestComplete_ManyProblems(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	_, err := m.Complete(t.Context(), &art.History{Messages: make([]art.Message, 1000)}, nil)
	if err == nil || strings.Count(err.Error(), "messages[") != 20 || !strings.Contains(err.Error(), "; and 980 more") {
		t.Errorf("got %v", err)
	}
}
