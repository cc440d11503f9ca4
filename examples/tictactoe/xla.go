//go:build cgo

package main

import _ "github.com/goart-dev/art/backend/device/xla" // for -device xla:cpu
