package publish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// HubOptions of [Hub].
type HubOptions struct {
	// Repo is the repository, OWNER/NAME. It is created if there is none. Required.
	Repo string
	// Token may write to it. Default: $HF_TOKEN.
	Token string
	// BaseURL is the hub. Default: $HF_ENDPOINT, or https://huggingface.co.
	BaseURL string
	// Branch receives the commits. Default main.
	Branch string
	// Public makes a new repository public. Default: it is private.
	Public bool
	// Folder is where in the repository a checkpoint goes. nil: to the root, where a program that names the repository
	// finds the newest; those before are earlier commits.
	Folder func(c *Checkpoint) string
	// Optimizer sends the state of the optimizer too, which is larger than the adapter. Default: adapter_config.json and
	// adapter_model.safetensors only.
	Optimizer bool
	// Client makes the requests; it is copied, and refuses redirects to another host. nil is the default.
	Client *http.Client
}

// Hub is a target that commits checkpoints to a repository of Hugging Face's hub, or of a server with its API: large
// files by LFS, in one piece or in parts as the hub asks. It sends what the client huggingface_hub 2.4.0 sends.
func Hub(opts *HubOptions) (Target, error) {
	var o HubOptions
	if opts != nil {
		o = *opts
	}
	o.Token = cmp.Or(o.Token, os.Getenv("HF_TOKEN"))
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("HF_ENDPOINT"), "https://huggingface.co"), "/")
	o.Branch = cmp.Or(o.Branch, "main")
	var p []error
	if owner, name, ok := strings.Cut(o.Repo, "/"); !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		p = append(p, fmt.Errorf("the field Repo is %q, want OWNER/NAME", o.Repo))
	}
	if o.Token == "" {
		p = append(p, errors.New("the field Token is empty, and so is $HF_TOKEN"))
	}
	if len(p) > 0 {
		return nil, &art.Error{Op: "publish", Err: fmt.Errorf("%w: %w", art.ErrInvalid, errors.Join(p...)),
			Hint: "correct the HubOptions"}
	}
	return &hub{opts: o, web: web{client: secret.Client(o.Client), secret: o.Token}}, nil
}

type hub struct {
	opts    HubOptions
	web     web
	created atomic.Bool
}

// Publish implements [Target]: one commit with the files of a checkpoint.
func (h *hub) Publish(ctx context.Context, c *Checkpoint) error {
	if err := h.create(ctx); err != nil {
		return err
	}
	infos, err := adapterFiles(c.Dir, h.opts.Optimizer)
	if err != nil {
		return err
	}
	folder := ""
	if h.opts.Folder != nil {
		folder = h.opts.Folder(c)
	}
	var files []*upload
	for _, info := range infos {
		files = append(files, &upload{
			local: filepath.Join(c.Dir, info.Name()), path: path.Join(folder, info.Name()), size: info.Size(),
		})
	}
	modes, err := h.modes(ctx, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.mode = modes[f.path]; f.size == 0 && f.mode == large {
			f.mode = regular // the store takes no empty files
		}
		if f.mode != regular && f.mode != large && f.mode != ignored {
			return fmt.Errorf("the hub wants %s to be sent in the way %q, which is not known here", f.path, f.mode)
		}
	}
	if err := h.store(ctx, files); err != nil {
		return err
	}
	return h.commit(ctx, fmt.Sprintf("step %d", c.Step), files)
}

// create makes the repository, once. One that is there is fine, and so is a token that may only write to it.
func (h *hub) create(ctx context.Context) error {
	if h.created.Load() {
		return nil
	}
	owner, name, _ := strings.Cut(h.opts.Repo, "/")
	visibility := "private"
	if h.opts.Public {
		visibility = "public"
	}
	err := h.post(ctx, h.opts.BaseURL+"/api/repos/create", mediaJSON, map[string]string{
		"name": name, "organization": owner, "visibility": visibility,
	}, nil)
	var status *statusError
	if errors.As(err, &status) && (status.code == http.StatusConflict || status.code == http.StatusForbidden) {
		err = nil
	}
	h.created.Store(err == nil)
	return err
}

type upload struct {
	local, path string
	size        int64
	mode        string // regular, lfs, or "" for one that the repository ignores
	oid         string // of LFS: the SHA-256 of the content
}

// adapterFiles lists the files of a checkpoint: those of the adapter, or all.
func adapterFiles(dir string, all bool) (list []fs.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !all && !strings.HasPrefix(e.Name(), "adapter_") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	if len(list) == 0 {
		return nil, errors.New("the checkpoint has no adapter")
	}
	return list, nil
}

// sampleSize is how much of a file the hub looks at to choose a mode, in bytes.
const sampleSize = 512

// modes are the answer of the hub, by the path of a file.
func (h *hub) modes(ctx context.Context, files []*upload) (map[string]string, error) {
	type preupload struct {
		Path   string `json:"path"`
		Sample []byte `json:"sample"`
		Size   int64  `json:"size"`
	}
	var ask struct {
		Files []preupload `json:"files"`
	}
	for _, f := range files {
		sample, err := f.read(sampleSize)
		if err != nil {
			return nil, err
		}
		ask.Files = append(ask.Files, preupload{f.path, sample, f.size})
	}
	var answer struct {
		Files []struct {
			Path, UploadMode string
			ShouldIgnore     bool
		}
	}
	if err := h.post(ctx, h.api("preupload"), mediaJSON, ask, &answer); err != nil {
		return nil, err
	}
	modes := map[string]string{}
	for _, f := range answer.Files {
		if modes[f.Path] = f.UploadMode; f.ShouldIgnore {
			modes[f.Path] = ignored
		}
	}
	return modes, nil
}

// The ways in which a file is sent.
const (
	regular = "regular"
	large   = "lfs"
	ignored = "ignored"
)

// read reads the beginning of a file.
func (f *upload) read(most int64) ([]byte, error) {
	file, err := os.Open(f.local)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// line is one of those of a commit.
type line struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// line is the file in a commit: its content, or what it is stored as.
func (f *upload) line() (line, error) {
	if f.mode == large {
		return line{"lfsFile", map[string]any{"path": f.path, "algo": "sha256", "oid": f.oid, "size": f.size}}, nil
	}
	content, err := f.read(f.size)
	text := base64.StdEncoding.EncodeToString(content)
	return line{"file", map[string]string{"content": text, "path": f.path, "encoding": "base64"}}, err
}

// commit makes a commit of files that are stored already, or are part of it.
func (h *hub) commit(ctx context.Context, summary string, files []*upload) error {
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	err := lines.Encode(line{"header", map[string]string{"summary": summary, "description": ""}})
	for _, f := range files {
		if f.mode == ignored || err != nil {
			continue
		}
		var l line
		if l, err = f.line(); err == nil {
			err = lines.Encode(l)
		}
	}
	if err != nil {
		return err
	}
	var answer struct{ CommitOid string }
	if err := h.send(ctx, h.api("commit"), mediaLines, body.Bytes(), &answer); err != nil {
		return err
	}
	if answer.CommitOid == "" {
		return errors.New("the hub answers to a commit without its id: BaseURL is not that of a hub")
	}
	return nil
}

// api is the address of a route of the repository.
func (h *hub) api(route string) string {
	return h.opts.BaseURL + "/api/models/" + h.opts.Repo + "/" + route + "/" + h.opts.Branch
}

// post sends JSON, and reads the answer into out unless it is nil.
func (h *hub) post(ctx context.Context, url, media string, body, out any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return h.send(ctx, url, media, data, out)
}

// send is post with a body that is encoded. The token goes to the hub only, wherever its answers point.
func (h *hub) send(ctx context.Context, url, media string, body []byte, out any) error {
	r, err := request(ctx, url, media, body)
	if err != nil {
		return err
	}
	if strings.HasPrefix(url, h.opts.BaseURL+"/") {
		r.Header.Set("Authorization", "Bearer "+h.opts.Token)
	}
	_, err = h.web.do(r, out)
	var status *statusError
	if errors.As(err, &status) {
		switch status.code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return fmt.Errorf("%w; the token must be one that may write to %s, and create it if there is no such repository",
				err, h.opts.Repo)
		}
	}
	return err
}

// request is one with a body of a media type.
func request(ctx context.Context, url, media string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("an address of the hub cannot be read") // it may be a secret
	}
	r.Header.Set("Content-Type", media)
	if media == mediaLFS {
		r.Header.Set("Accept", mediaLFS)
	}
	return r, nil
}
