package mcp

import (
	"os"
	"runtime"
	"strings"

	"github.com/goart-dev/art/internal/secret"
)

// inheritedNames are the environment variables that a command gets, by the operating system: the lists of the official
// SDKs for TypeScript and Python, for Windows together. Keys of this process are not for every server.
var inheritedNames = map[bool][]string{
	false: {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"},
	true: {
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
	},
}

// inherited are the variables of this process that a command gets.
func inherited() (env []string) {
	for _, name := range inheritedNames[runtime.GOOS == "windows"] {
		if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") { // a function of the shell
			env = append(env, name+"="+value)
		}
	}
	return env
}

// secrets lists what options have of keys: all headers, and the variables that are named like one.
func secrets(o *Options) []string {
	list := secret.OfHeader(o.Header)
	for _, variable := range o.Env {
		if name, value, _ := strings.Cut(variable, "="); secret.IsName(name) {
			list = append(list, value)
		}
	}
	return list
}
