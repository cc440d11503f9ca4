//go:build cgo

package xla

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/go-xla/pjrt"
)

// file is a plug-in that was found and not yet loaded.
type file struct {
	name string // "cpu", "cuda"
	path string
}

// search lists plug-ins in the order in which folders are searched. A later one of the same name is only used when it
// is requested by its path.
func search() []file {
	if list, ok := os.LookupEnv(pjrt.PJRTPluginPathsEnv); ok {
		return distinct(inFolders(filepath.SplitList(list)))
	}
	found := inFolders(usualFolders())
	for _, prefix := range pythonPrefixes() {
		found = append(found, inPython(prefix)...)
	}
	return distinct(found)
}

// usualFolders are those that go-xla's installers and system packages write to.
func usualFolders() []string {
	var folders []string
	for _, root := range []string{os.Getenv("HOME") + "/.local", "/usr/local"} {
		for _, sub := range []string{"lib/go-xla", "lib/gomlx/pjrt"} {
			folders = append(folders, filepath.Join(root, sub), filepath.Join(root, sub, "nvidia"))
		}
	}
	return append(folders, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
}

// inFolders searches for files that are named like a plug-in.
func inFolders(folders []string) []file {
	var found []file
	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			continue
		}
		for _, path := range glob(folder, "*") {
			if name := nameOf(path); name != "" {
				found = append(found, file{name, path})
			}
		}
	}
	return found
}

// pythonPrefixes are the folders of Python installations.
func pythonPrefixes() []string {
	prefixes := []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(folder, "python3")); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Clean(folder)))
			break
		}
	}
	prefixes = append(prefixes, os.Getenv("HOME")+"/.local", "/usr/local", "/usr")
	return slices.DeleteFunc(prefixes, func(p string) bool { return !filepath.IsAbs(p) })
}

// inPython searches the packages of one Python installation that may contain a plug-in: those of JAX, of the XLA
// project, and others that name their file as go-xla does.
func inPython(prefix string) []file {
	var found []file
	for _, packages := range glob(prefix, "lib*/python3*/*-packages") {
		for _, pattern := range []string{"jax_plugins/*/*", "xla_plugins/*/*", "*/pjrt*"} {
			for _, path := range glob(packages, pattern) {
				if name := nameOf(path); name != "" {
					found = append(found, file{name, path})
				}
			}
		}
	}
	return found
}

// glob is filepath.Glob below a folder whose name may contain any character. The matches are sorted, the latest last.
func glob(folder, pattern string) []string {
	matches, err := filepath.Glob(filepath.Join(meta.ReplaceAllString(folder, `\$0`), pattern))
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return matches
}

// meta are the special characters of a pattern.
var meta = regexp.MustCompile(`[*?\[\\]`)

// fileNames are the names of plug-ins: of go-xla and its installers, of JAX, and of the XLA project.
var fileNames = []*regexp.Regexp{
	regexp.MustCompile(`^pjrt_c_api_([a-z0-9]+)(?:_v[0-9.]+)?_plugin\.(?:so|dylib)$`),
	regexp.MustCompile(`^pjrt[-_]plugin[-_]([a-z0-9]+)\.(?:so|dylib)$`),
	regexp.MustCompile(`^xla_([a-z]+)[0-9]*_(?:plugin|pjrt)\.(?:so|dylib)$`),
}

// nameOf returns the name of a plug-in by that of its file, "" when it is not named like one.
func nameOf(path string) string {
	for _, names := range fileNames {
		if m := names.FindStringSubmatch(filepath.Base(path)); m != nil {
			return m[1]
		}
	}
	return ""
}

// distinct drops duplicates: other paths to the same file.
func distinct(files []file) []file {
	seen := map[string]bool{}
	return slices.DeleteFunc(files, func(f file) bool {
		real, err := filepath.EvalSymlinks(f.path)
		if err != nil || seen[real] {
			return true
		}
		seen[real] = true
		return false
	})
}

// hasNVIDIA reports whether the driver of an NVIDIA GPU runs.
func hasNVIDIA() bool { return len(glob("/dev", "nvidia*")) > 0 }

// choose returns the plug-in of a name. It reports false when there is none.
func choose(files []file, name string) (file, bool) {
	i := slices.IndexFunc(files, func(f file) bool { return f.name == name })
	if i < 0 {
		return file{}, false
	}
	return files[i], true
}

// names lists the names of devices.
func names(files []file) string {
	var all []string
	for _, f := range files {
		if !slices.Contains(all, Name+":"+f.name) {
			all = append(all, Name+":"+f.name)
		}
	}
	return strings.Join(all, ", ")
}
