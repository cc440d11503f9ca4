//go:build cgo

package xla

import (
	"fmt"

	"github.com/gomlx/go-xla/pjrt"
)

// Plugin is a PJRT plug-in that was found on this machine.
type Plugin struct {
	Device   string   // the name to open it by: "xla:cpu"
	Path     string   // of the shared library; "" when there is none
	API      string   // version of the PJRT C API, "0.104"; "" when it could not be loaded
	Platform string   // as the plug-in calls it
	Version  string   // of the platform, as the plug-in writes it: those of CUDA and cuDNN, say
	Devices  []string // as the plug-in describes them
	Err      error    // why it cannot be used
}

// Plugins searches for plug-ins, loads each of them and opens its devices briefly, which takes a second or more each. A
// plug-in with the same name as an earlier one has its path as name. On a machine with an NVIDIA GPU the one for CUDA
// is always listed, if it is missing without a path and with what to install.
func Plugins() []Plugin { return plugins(search(), hasNVIDIA()) }

func plugins(files []file, nvidia bool) []Plugin {
	var all []Plugin
	seen := map[string]bool{}
	for _, f := range files {
		p := examine(f)
		p.Device = Name + ":" + f.name
		if seen[f.name] {
			p.Device = Name + ":" + f.path
		}
		seen[f.name] = true
		all = append(all, p)
	}
	if nvidia && !seen["cuda"] {
		all = append(all, Plugin{Device: Name + ":cuda", Err: missing("cuda", files)})
	}
	return all
}

// examine loads a plug-in and reads what it reports.
func examine(f file) Plugin {
	opening.Lock()
	defer opening.Unlock()
	p := Plugin{Path: f.path}
	plugin, err := load(f)
	if plugin != nil {
		major, minor := plugin.Version()
		p.API = fmt.Sprintf("%d.%d", major, minor)
	}
	if err == nil {
		err = p.open(f, plugin)
	}
	p.Err = f.unusable(err)
	return p
}

// open reads what only a client reports.
func (p *Plugin) open(f file, plugin *pjrt.Plugin) error {
	options := pjrt.NamedValuesMap{}
	if f.name != "cpu" {
		options[preallocateOption] = false // an inspection must not allocate the memory of a GPU
	}
	client, err := plugin.NewClient(options)
	if err != nil && f.name != "cpu" && f.name != "cuda" { // as in [file.open]
		client, err = plugin.NewClient(pjrt.NamedValuesMap{})
	}
	if err != nil {
		return err
	}
	p.Platform, p.Version = client.Platform(), client.PlatformVersion()
	for _, device := range client.AddressableDevices() {
		description, err := device.GetDescription()
		if err != nil {
			return err
		}
		p.Devices = append(p.Devices, description.DebugString())
	}
	return client.Destroy()
}
