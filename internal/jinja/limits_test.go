package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestRender_Canceled: rendering ends soon after its context, with the error of that, not of the limits.
func TestRender_Canceled(t *testing.T) {
	template, err := Parse(`{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := template.Render(nil, Options{Context: ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	var limit *Error
	_, err = template.Render(nil, Options{Context: t.Context(), Limits: Limits{Work: 1 << 20}})
	if !errors.As(err, &limit) || limit.Kind != limitError {
		t.Errorf("with a context that does not end: error %v", err)
	}
}

// TestFromJSON_LongNumber: a number with too many digits is rejected before it is parsed, which would take quadratic
// time.
func TestFromJSON_LongNumber(t *testing.T) {
	allocated := func(n int) uint64 {
		text := []byte(strings.Repeat("7", n))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := FromJSON(text); err == nil || len(err.Error()) > 100 {
			t.Errorf("%d digits: error %.200v", n, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := allocated(20_000), allocated(80_000); large > 7*small {
		t.Errorf("20000 digits allocate %d bytes, 80000 allocate %d", small, large)
	}
}
