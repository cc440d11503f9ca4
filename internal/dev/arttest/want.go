package arttest

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// WantEqual checks that two values are deeply equal.
func WantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// WantErr checks that err is an *art.Error with a hint that wraps target and says all of the words.
func WantErr(t *testing.T, err, target error, words ...string) {
	t.Helper()
	typed := new(art.Error)
	if !errors.Is(err, target) || !errors.As(err, &typed) || typed.Hint == "" {
		t.Errorf("error is %v, want an *art.Error with a hint that wraps %q", err, target)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}
