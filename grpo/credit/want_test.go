package credit

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The tests of this package import the standard library only: users of package art have it among their dependencies.

// expect fails the test unless ok. about is a format and its arguments.
func expect(t *testing.T, ok bool, about ...any) {
	t.Helper()
	if !ok {
		t.Fatal("not as expected", text(about))
	}
}

func wantEqual(t *testing.T, want, got any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("got %v, want %v %s", got, want, text(about))
	}
}

// wantNear compares numbers whose difference may be up to tolerance.
func wantNear(t *testing.T, want, got, tolerance float64, about ...any) {
	t.Helper()
	if want != got && !(math.Abs(want-got) <= tolerance) {
		t.Fatalf("got %v, want %v within %v %s", got, want, tolerance, text(about))
	}
}

// wantClose compares numbers whose difference may be up to a part of want.
func wantClose(t *testing.T, want, got, part float64, about ...any) {
	t.Helper()
	wantNear(t, want, got, part*math.Abs(want), about...)
}

func wantAllNear(t *testing.T, want, got []float64, tolerance float64, about ...any) {
	t.Helper()
	wantEqual(t, len(want), len(got), about...)
	for i := range want {
		wantNear(t, want[i], got[i], tolerance, about...)
	}
}

func wantOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err error, part string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Fatalf("error %v, want %q in it %s", err, part, text(about))
	}
}

func wantPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	f()
}

func text(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return fmt.Sprintf(about[0].(string), about[1:]...)
}
