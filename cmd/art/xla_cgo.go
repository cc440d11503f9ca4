//go:build cgo

package main

import "github.com/goart-dev/art/backend/device/xla"

// inspectXLA loads the plug-ins that it finds on this machine.
func inspectXLA() xlaReport {
	r := xlaReport{Plugins: []xlaPlugin{}} // an empty list in JSON, not null
	for _, p := range xla.Plugins() {
		entry := xlaPlugin{
			Device: p.Device, Path: p.Path, API: p.API, Platform: p.Platform, Version: p.Version, Devices: p.Devices,
		}
		if p.Err != nil {
			entry.Problem = p.Err.Error()
		}
		r.Plugins = append(r.Plugins, entry)
	}
	if len(r.Plugins) == 0 {
		if _, err := xla.New(""); err != nil {
			r.Problem = err.Error() // it says what to install
		}
	}
	return r
}
