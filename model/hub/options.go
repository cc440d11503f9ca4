package hub

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	hfhub "github.com/gomlx/go-huggingface/hub"
)

// Options of [Pull] and [Cached]. Zero values are the defaults, which the environment sets: see the package's comment.
type Options struct {
	// Endpoint is the URL of the hub.
	Endpoint string
	// Token is sent to the hub. Models that are private or gated need one.
	Token string
	// Cache is the folder of all models.
	Cache string
	// Offline forbids the network.
	Offline bool
	// Client makes the requests. Its CheckRedirect is not used. Default: one that gives up on servers that are silent.
	Client *http.Client
	// Progress is told how far a download is, from one goroutine at a time. nil: nobody is.
	Progress func(Progress)
	// Retry is told of a request that failed for a reason that may pass, before the pause after which it is made again.
	// nil: nobody is.
	Retry func(Retry)
}

// Retry is a request of a [Pull] that will be made again.
type Retry struct {
	Err   error         // why it failed
	Pause time.Duration // before the next try
	Try   int           // that failed, from 1; it counts anew where there was progress
	Tries int           // that are made at most
}

// Progress of a [Pull].
type Progress struct {
	File  string // being fetched
	Done  int64  // bytes of all files of the pull that are there, earlier partial downloads included
	Total int64  // bytes of all files of the pull; it grows when an index names more
}

// resolve returns the options with their defaults.
func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	home, err := homeFolder()
	if err != nil {
		return out, err
	}
	out.Endpoint = strings.TrimRight(cmp.Or(out.Endpoint, os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/")
	out.Offline = out.Offline || enabled("HF_HUB_OFFLINE") || enabled("TRANSFORMERS_OFFLINE")
	if out.Cache, err = folder(cmp.Or(out.Cache, os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"), filepath.Join(home, "hub"))); err != nil {
		return out, err
	}
	if out.Token == "" && !enabled("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		if out.Token, err = findToken(home); err != nil {
			return out, err
		}
	}
	if out.Client == nil {
		out.Client = defaultClient()
	}
	return out, nil
}

// homeFolder returns where the token and the cache are.
func homeFolder() (string, error) {
	return folder(cmp.Or(os.Getenv("HF_HOME"), filepath.Dir(hfhub.DefaultCacheDir())))
}

// folder returns an absolute path. It expands what Python expands: variables, and the ~ of the user.
func folder(path string) (string, error) {
	path = os.ExpandEnv(path)
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("hub: %q: %w", path, err)
		}
		path = home + rest
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("hub: %w", err)
	}
	return path, nil
}

// findToken returns the token of the environment, or of the token file. It is empty when there is none.
func findToken(home string) (string, error) {
	if token := strings.TrimSpace(cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN"))); token != "" {
		return token, nil
	}
	path, err := folder(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("hub: token file: %w; make it readable, or set HF_TOKEN", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// enabled tells whether a variable of the environment says yes, in the words that Python accepts.
func enabled(variable string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv(variable)))
}
