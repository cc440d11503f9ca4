package hub

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	hfhub "github.com/gomlx/go-huggingface/hub"
)

// Options of [Pull] and [Cached]. Zero values are the defaults, which come from the environment: see the package
// comment.
type Options struct {
	// Endpoint is the URL of the hub.
	Endpoint string
	// Token is sent to the hub. Models that are private or gated need one.
	Token string
	// Cache is the folder of all models.
	Cache string
	// Offline forbids the network.
	Offline bool
	// Client makes the requests. Its CheckRedirect is not used. Default: one with timeouts.
	Client *http.Client
	// Check is called with config.json before anything else is fetched; its error ends the [Pull]. May be nil.
	Check func(config []byte) error
	// Progress is called as a download proceeds, from one goroutine at a time. May be nil.
	Progress func(Progress)
	// Retry is called before the pause after a request that failed with a temporary error. May be nil.
	Retry func(Retry)
}

// Retry is a failed request of a [Pull] that will be repeated.
type Retry struct {
	Err   error         // why it failed
	Pause time.Duration // before the next attempt
	Try   int           // the one that failed, from 1; progress resets it
	Tries int           // at most
}

// Progress of a [Pull].
type Progress struct {
	File  string // being fetched
	Done  int64  // bytes of all files of the pull that have arrived, earlier partial downloads included
	Total int64  // bytes of all files of the pull; it grows when an index lists more
}

func (o *Options) resolve() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	home, err := folder(cmp.Or(os.Getenv("HF_HOME"), filepath.Dir(hfhub.DefaultCacheDir()))) // of the token and the cache
	if err != nil {
		return out, err
	}
	out.Endpoint = strings.TrimRight(cmp.Or(out.Endpoint, os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/")
	out.Offline = out.Offline || enabled("HF_HUB_OFFLINE") || enabled("TRANSFORMERS_OFFLINE")
	if out.Cache, err = folder(cmp.Or(out.Cache, os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"),
		filepath.Join(home, "hub"))); err != nil {
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

// folder returns an absolute path, with variables and ~ expanded as in Python.
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

// enabled reports whether an environment variable is true, in the spellings that Python accepts.
func enabled(variable string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv(variable)))
}

const defaultRevision = "main"

// Name is a model on the hub.
type Name struct {
	Repo     string // ORG/NAME
	Revision string // a branch, a tag, or a commit of 40 hexadecimal digits
}

// repoPart is one side of ORG/NAME. Double dashes would be ambiguous in the cache.
var repoPart = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

// revisionPart is an element of a revision, between slashes.
var revisionPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)

// ParseName reads "ORG/NAME" or "ORG/NAME@revision".
func ParseName(text string) (Name, error) {
	repo, revision, given := strings.Cut(text, "@")
	if !given {
		revision = defaultRevision
	}
	n := Name{repo, revision}
	org, name, ok := strings.Cut(repo, "/")
	if !ok || len(repo) > 96 || !repoPart.MatchString(org) || !repoPart.MatchString(name) ||
		strings.Contains(repo, "--") || strings.Contains(repo, "..") {
		return n, fmt.Errorf("hub: %q is not the name of a model: write ORG/NAME or ORG/NAME@revision", text)
	}
	valid := len(revision) <= 256
	for part := range strings.SplitSeq(revision, "/") {
		valid = valid && revisionPart.MatchString(part) && !strings.Contains(part, "..") && len(part) <= 128
	}
	if !valid {
		return n, fmt.Errorf("hub: %q: %q is not a revision: write the name of a branch or tag, or a commit", text, revision)
	}
	return n, nil
}

// String returns ORG/NAME@revision.
func (n Name) String() string { return n.Repo + "@" + n.Revision }

// isCommit reports whether a revision is a full commit hash, which never changes.
func isCommit(revision string) bool { return commitForm.MatchString(revision) }

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
