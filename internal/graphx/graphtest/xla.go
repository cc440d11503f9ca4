//go:build cgo

package graphtest

import _ "github.com/goart-dev/art/backend/device/xla" // for DeviceEnv
