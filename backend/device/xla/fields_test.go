//go:build cgo

package xla

import (
	"reflect"
	"testing"

	goxla "github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/stretchr/testify/require"
)

// TestPrivateFields: the field of go-xla's functions that donation reads is there. It needs no plug-in. When it fails
// after an upgrade of go-xla, look for where compute/xla.Function keeps its StableHLO now, and adapt programOf.
func TestPrivateFields(t *testing.T) {
	field, ok := reflect.TypeFor[goxla.Function]().FieldByName("fn")
	require.True(t, ok, "compute/xla.Function has no field fn any more")
	require.Equal(t, reflect.TypeFor[*stablehlo.Function](), field.Type)
	_, err := programOf(&goxla.Function{})
	require.ErrorContains(t, err, "adapt programOf")
}
