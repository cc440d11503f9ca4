package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/goart-dev/art/backend/device/cpu"
)

func init() {
	verbs["version"] = verb{
		summary: "print the version",
		text: `
Prints the version of the module, the commit that the program was built from, the CPU device, and
the version of Go. Include it in bug reports. The commit is known when the program was built by go
build or go install in a checkout, not by go run.`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object: version, commit, modified, device, go, platform")
			return func(_ []string, stdout, _ io.Writer) error {
				info, _ := debug.ReadBuildInfo()
				v := versionOf(info)
				return writeResult(stdout, *asJSON, v, v.text())
			}
		},
	}
}

// version is what version prints.
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that were not committed
	Device   string `json:"device"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionOf reads what the compiler recorded; info may be nil.
func versionOf(info *debug.BuildInfo) version {
	v := version{
		Version: "unknown", Device: deviceText(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info == nil {
		return v
	}
	v.Version = cmp.Or(info.Main.Version, v.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// deviceText names the CPU device, or says why there is none.
func deviceText() string {
	device, err := cpu.New(nil)
	if err != nil {
		return "none: " + err.Error()
	}
	defer device.Finalize()
	return device.Description()
}

// text is the version in text.
func (v version) text() string {
	commit := cmp.Or(v.Commit, "unknown")
	if v.Modified {
		commit += ", with changes"
	}
	return fmt.Sprintf("art %s\ncommit   %s\ndevice   %s\nGo       %s %s\n", v.Version, commit, v.Device, v.Go, v.Platform)
}
