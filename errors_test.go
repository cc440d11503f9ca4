package art_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/arttest"
)

func TestError_Error(t *testing.T) {
	e := &art.Error{Op: "train", Err: fmt.Errorf("%w: %q", art.ErrFrozen, "m")}
	wantEqual(t, "without hint", e.Error(), `art: train: model is frozen: "m"`)
	e.Hint = "thaw it"
	wantEqual(t, "with hint", e.Error(), `art: train: model is frozen: "m" (thaw it)`)
}

// TestComplete_ManyProblems: an error lists 20 problems and counts the others.
func TestComplete_ManyProblems(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	_, err := m.Complete(t.Context(), &art.History{Messages: make([]art.Message, 1000)}, nil)
	if err == nil || strings.Count(err.Error(), "messages[") != 20 || !strings.Contains(err.Error(), "; and 980 more") {
		t.Errorf("got %v", err)
	}
}
