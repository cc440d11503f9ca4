package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // what W&B asks for
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// WandbOptions of [Wandb].
type WandbOptions struct {
	// Entity is the user or the team. Default: $WANDB_ENTITY, or that of the key.
	Entity string
	// Project receives the artifacts. Default: that of the checkpoint.
	Project string
	// Run is the id of the run that the artifacts are of. Default: publish-NAME, with the name of the model.
	Run string
	// APIKey is the key of the account. Default: $WANDB_API_KEY.
	APIKey string
	// BaseURL is the server. Default: $WANDB_BASE_URL, or https://api.wandb.ai.
	BaseURL string
	// Optimizer sends the state of the optimizer too. Default: adapter_config.json and adapter_model.safetensors only.
	Optimizer bool
	// Client makes the requests; it is copied, and refuses redirects to another host. nil is the default.
	Client *http.Client
}

// Wandb is a target that logs checkpoints as artifacts of W&B: of the type "lora", with the name of the model and the
// aliases "latest" and "stepN", as ART's are. It sends what the client wandb 0.31.0 sends. Files have at most 2 GiB.
func Wandb(opts *WandbOptions) (Target, error) {
	var o WandbOptions
	if opts != nil {
		o = *opts
	}
	o.APIKey = cmp.Or(o.APIKey, os.Getenv("WANDB_API_KEY"))
	o.Entity = cmp.Or(o.Entity, os.Getenv("WANDB_ENTITY"))
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("WANDB_BASE_URL"), "https://api.wandb.ai"), "/")
	if o.APIKey == "" {
		err := fmt.Errorf("%w: APIKey is empty, and so is $WANDB_API_KEY", art.ErrInvalid)
		return nil, &art.Error{Op: "publish", Err: err, Hint: "correct the WandbOptions"}
	}
	return &artifacts{opts: o, entity: o.Entity, web: web{client: secret.Client(o.Client), secret: o.APIKey}}, nil
}

// artifacts are those of an account.
type artifacts struct {
	opts WandbOptions
	web  web

	mu     sync.Mutex
	entity string
}

type artifactFile struct {
	name, local, md5 string // md5 in base64
	size             int64
}

// maxArtifactFile is the size from which on the client of W&B sends a file in parts, in bytes.
const maxArtifactFile = 2 << 30

// artifact is a checkpoint on its way.
type artifact struct {
	entity, project, run, name string
	step                       int
	files                      []artifactFile
	id, base                   string // base is the version before
}

func (w *artifacts) Publish(ctx context.Context, c *Checkpoint) error {
	a := &artifact{
		project: cmp.Or(w.opts.Project, c.Project), run: cmp.Or(w.opts.Run, "publish-"+c.Name), name: c.Name, step: c.Step,
	}
	var err error
	if a.files, err = artifactFiles(c.Dir, w.opts.Optimizer); err != nil {
		return err
	}
	if a.entity, err = w.owner(ctx); err != nil {
		return err
	}
	const query = `mutation UpsertBucket($name: String, $project: String, $entity: String) {
	upsertBucket(input: {name: $name, modelName: $project, entityName: $entity}) { bucket { id name } inserted }
}`
	run := map[string]any{"name": a.run, "project": a.project, "entity": a.entity} // that the artifact is of
	if err := w.graphql(ctx, "UpsertBucket", query, run, nil); err != nil {
		return err
	}
	done, err := w.create(ctx, a)
	if err != nil || done {
		return err
	}
	return w.fill(ctx, a)
}

// artifactFiles lists what is sent of a checkpoint, by name.
func artifactFiles(dir string, optimizer bool) (list []artifactFile, err error) {
	infos, err := adapterFiles(dir, optimizer)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		f := artifactFile{name: info.Name(), local: filepath.Join(dir, info.Name())}
		sum := md5.New() //nolint:gosec // what W&B asks for
		if f.size, err = copyFile(sum, f.local); err != nil {
			return nil, err
		}
		f.md5 = base64.StdEncoding.EncodeToString(sum.Sum(nil))
		if f.size >= maxArtifactFile {
			return nil, fmt.Errorf("%s has %d bytes, and files of 2 GiB or more are not sent to W&B", f.name, f.size)
		}
		list = append(list, f)
	}
	return list, nil
}

// digest is that of the list of files:
//
//	md5("wandb-artifact-manifest-v1\n" + "NAME:MD5\n" of each file, by name)
func (a *artifact) digest() string {
	sum := md5.New() //nolint:gosec // what W&B asks for
	_, _ = io.WriteString(sum, "wandb-artifact-manifest-v1\n")
	for _, f := range a.files {
		_, _ = fmt.Fprintf(sum, "%s:%s\n", f.name, f.md5)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// clientID is an id of 128 characters for parts that name something: the same one when it is sent again.
func clientID(parts ...string) string {
	sum := sha512.Sum512([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// owner is the entity of the options, or of the key.
func (w *artifacts) owner(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.entity != "" {
		return w.entity, nil
	}
	var viewer struct {
		Viewer struct{ Entity string }
	}
	if err := w.graphql(ctx, "Viewer", `query Viewer { viewer { id entity } }`, nil, &viewer); err != nil {
		return "", err
	}
	if w.entity = viewer.Viewer.Entity; w.entity == "" {
		return "", errors.New("W&B: the key has no default entity: set WandbOptions.Entity")
	}
	return w.entity, nil
}

// create makes the artifact. done is true when it is there already, with the same files.
func (w *artifacts) create(ctx context.Context, a *artifact) (done bool, err error) {
	const query = `mutation CreateArtifact($input: CreateArtifactInput!) {
	createArtifact(input: $input) { artifact { id state artifactSequence { latestArtifact { id } } } }
}`
	aliases := []map[string]string{}
	for _, alias := range []string{"latest", fmt.Sprintf("step%d", a.step)} {
		aliases = append(aliases, map[string]string{"alias": alias, "artifactCollectionName": a.name})
	}
	digest := a.digest()
	var answer struct {
		CreateArtifact struct {
			Artifact struct {
				ID, State        string
				ArtifactSequence struct{ LatestArtifact *struct{ ID string } }
			}
		}
	}
	err = w.graphql(ctx, "CreateArtifact", query, map[string]any{"input": map[string]any{
		"aliases": aliases, "artifactCollectionName": a.name, "artifactTypeName": "lora", "digest": digest,
		"digestAlgorithm": "MANIFEST_MD5", "enableDigestDeduplication": true, "entityName": a.entity,
		"projectName": a.project, "runName": a.run, "metadata": fmt.Sprintf(`{"step":%d}`, a.step),
		"clientID":         clientID(a.entity, a.project, a.run, a.name, fmt.Sprint(a.step), digest),
		"sequenceClientID": clientID(a.entity, a.project, a.run, a.name),
	}}, &answer)
	if err != nil {
		return false, err
	}
	made := &answer.CreateArtifact.Artifact
	if made.ID == "" {
		return false, errors.New("W&B does not say which artifact it has made: BaseURL is not that of W&B")
	}
	if latest := made.ArtifactSequence.LatestArtifact; latest != nil {
		a.base = latest.ID
	}
	a.id = made.ID
	return made.State == "COMMITTED", nil
}

// fill sends the files and their list, and commits the artifact.
func (w *artifacts) fill(ctx context.Context, a *artifact) error {
	draft, _, err := w.manifest(ctx, a, "", false)
	if err != nil {
		return err
	}
	if err := w.sendFiles(ctx, a, draft); err != nil {
		return err
	}
	list, err := a.list()
	if err != nil {
		return err
	}
	sum := md5.Sum(list) //nolint:gosec // what W&B asks for
	_, to, err := w.manifest(ctx, a, base64.StdEncoding.EncodeToString(sum[:]), true)
	if err != nil {
		return err
	}
	if err := w.put(ctx, to, bytes.NewReader(list), int64(len(list))); err != nil {
		return fmt.Errorf("the list of files: %w", err)
	}
	const query = `mutation CommitArtifact($artifactID: ID!) {
	commitArtifact(input: {artifactID: $artifactID}) { artifact { id digest } }
}`
	return w.graphql(ctx, "CommitArtifact", query, map[string]any{"artifactID": a.id}, nil)
}

// list is the list of files, in W&B's form.
func (a *artifact) list() ([]byte, error) {
	contents := map[string]any{}
	for _, f := range a.files {
		contents[f.name] = map[string]any{
			"digest": f.md5, "size": f.size, "birthArtifactID": a.id, "skip_cache": false,
		}
	}
	return json.Marshal(map[string]any{
		"version": 1, "storagePolicy": "wandb-storage-policy-v1",
		"storagePolicyConfig": map[string]string{"storageLayout": "V2"}, "contents": contents,
	})
}

// destination is where W&B wants a file.
type destination struct {
	UploadURL     string
	UploadHeaders []string
}

// manifest announces the list of files, without a digest before they are sent.
func (w *artifacts) manifest(
	ctx context.Context, a *artifact, digest string, include bool,
) (id string, to *destination, err error) {
	const query = `mutation CreateArtifactManifest($artifactID: ID!, $baseArtifactID: ID, $name: String!, $digest: String!,
	$entityName: String!, $projectName: String!, $runName: String!, $manifestType: ArtifactManifestType!,
	$includeUpload: Boolean!) {
	createArtifactManifest(input: {artifactID: $artifactID, baseArtifactID: $baseArtifactID, name: $name, digest: $digest,
		entityName: $entityName, projectName: $projectName, runName: $runName, type: $manifestType}) {
		artifactManifest { id file {
			id uploadUrl @include(if: $includeUpload) uploadHeaders @include(if: $includeUpload)
		} }
	}
}`
	variables := map[string]any{
		"artifactID": a.id, "baseArtifactID": nil, "name": "wandb_manifest.json", "digest": digest, "entityName": a.entity,
		"projectName": a.project, "runName": a.run, "manifestType": "FULL", "includeUpload": include,
	}
	if a.base != "" {
		variables["baseArtifactID"] = a.base
	}
	var answer struct {
		CreateArtifactManifest struct {
			ArtifactManifest struct {
				ID   string
				File destination
			}
		}
	}
	err = w.graphql(ctx, "CreateArtifactManifest", query, variables, &answer)
	made := &answer.CreateArtifactManifest.ArtifactManifest
	return made.ID, &made.File, err
}

func (w *artifacts) sendFiles(ctx context.Context, a *artifact, manifest string) error {
	const query = `mutation CreateArtifactFiles($input: CreateArtifactFilesInput!) {
	createArtifactFiles(input: $input) { files { edges { node { storagePath uploadUrl uploadHeaders } } } }
}`
	specs := []map[string]any{}
	for _, f := range a.files {
		specs = append(specs, map[string]any{
			"artifactID": a.id, "artifactManifestID": manifest, "md5": f.md5, "name": f.name,
		})
	}
	var answer struct {
		CreateArtifactFiles struct {
			Files struct {
				Edges []struct{ Node destination }
			}
		}
	}
	err := w.graphql(ctx, "CreateArtifactFiles", query, map[string]any{
		"input": map[string]any{"artifactFiles": specs, "storageLayout": "V2"},
	}, &answer)
	if err != nil {
		return err
	}
	edges := answer.CreateArtifactFiles.Files.Edges
	if len(edges) != len(a.files) {
		return fmt.Errorf("W&B says where to put %d of %d files", len(edges), len(a.files))
	}
	for i := range edges {
		if err := w.sendFile(ctx, &edges[i].Node, &a.files[i]); err != nil {
			return fmt.Errorf("%s: %w", a.files[i].name, err)
		}
	}
	return nil
}

// sendFile sends a file. One without a destination is there already.
func (w *artifacts) sendFile(ctx context.Context, to *destination, f *artifactFile) error {
	if to.UploadURL == "" {
		return nil
	}
	file, err := os.Open(f.local)
	if err != nil {
		return err
	}
	defer file.Close()
	return w.put(ctx, to, file, f.size)
}

// put sends content to a store, which is not given the key.
func (w *artifacts) put(ctx context.Context, to *destination, content io.ReaderAt, size int64) error {
	headers := map[string]string{}
	for _, header := range to.UploadHeaders {
		if key, value, ok := strings.Cut(header, ":"); ok {
			headers[key] = value
		}
	}
	_, err := w.web.put(ctx, to.UploadURL, io.NewSectionReader(content, 0, size), headers)
	return err
}

// graphql makes an operation, and reads its data into out unless it is nil.
func (w *artifacts) graphql(ctx context.Context, name, query string, variables map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables, "operationName": name})
	if err != nil {
		return err
	}
	r, err := request(ctx, w.opts.BaseURL+"/graphql", mediaJSON, body)
	if err != nil {
		return err
	}
	r.SetBasicAuth("api", w.opts.APIKey)
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	_, err = w.web.do(r, &answer)
	switch {
	case err != nil:
		return fmt.Errorf("W&B %s: %w", name, err)
	case len(answer.Errors) > 0:
		return fmt.Errorf("W&B %s: %.300s", name, secret.Hide(answer.Errors[0].Message, secret.OfHeader(r.Header)))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer.Data, out)
}
