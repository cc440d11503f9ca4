package brief

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrors_Bounded: the first are listed, nil ones not, and an error that is listed can be found.
func TestErrors_Bounded(t *testing.T) {
	require.NoError(t, Errors(nil))
	require.NoError(t, Errors([]error{nil, nil}))
	cause := errors.New("cause")
	errs := []error{nil, cause}
	for i := range 1500 {
		errs = append(errs, nil, fmt.Errorf("problem %d", i))
	}
	err := Errors(errs)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "problem 18\nand 1481 more problems like these")
	require.NotContains(t, err.Error(), "problem 19")
	require.ErrorContains(t, errs[3], "problem 0", "the list was changed")
	require.Equal(t, "cause\nb", Errors([]error{cause, errors.New("b")}).Error())
}

func TestNames_Bounded(t *testing.T) {
	require.Empty(t, Names(nil))
	require.Equal(t, "a, b", Names([]string{"a", "b"}))
	require.Equal(t, strings.Repeat("x, ", 19)+"x and 80 more", Names(strings.Split(strings.Repeat("x", 100), "")))
}

func TestText_Bounded(t *testing.T) {
	require.Equal(t, "text", Text("text"))
	require.Equal(t, strings.Repeat("ä", 100)+"...", Text(strings.Repeat("ä", 1000)))
	require.Equal(t, "a"+strings.Repeat("ä", 99)+"...", Text("a"+strings.Repeat("ä", 1000)))
}
