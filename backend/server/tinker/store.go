package tinker

import (
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// The kinds of documents: sessions/ID.json, and runs/NAME.json with runs/NAME.journal. usage.json is beside them.
const (
	kindSessions = "sessions"
	kindRuns     = "runs"
	usageFile    = "usage.json"
)

// sessionRecord is what is stored of a session.
type sessionRecord struct {
	ID, Tenant           string
	Key                  string // name of the one that created it; "" for one without limits
	Created              time.Time
	Tags                 []string
	Metadata             map[string]any
	DisplayName, Project string
	Runs                 []string
	Samplers             []samplerRecord
}

// samplerRecord says which weights a sampler has: those of a base when Run is "".
type samplerRecord struct {
	ID, Base string
	Project  string // of the run
	Run      string // training run
	Path     string // of the backend: "@STEP" of the run, or saved weights
	Tinker   string // the path that a client named, if it did
}

// runRecord is what is stored of a training run.
type runRecord struct {
	ID, Name, Tenant, Session string
	Key, Project              string // of the session
	Base                      string
	LoRA                      art.LoRA
	MLP, Attention            bool
	Seed                      uint64
	Created, LastRequest      time.Time
	Metadata                  map[string]any
	Corrupted                 string // why it cannot be continued
	Checkpoints               []checkpoint
}

// checkpoint is one entry of the index of saved weights.
type checkpoint struct {
	tinkerwire.Checkpoint
	Saved   string // the name that the backend knows, loop.SavedWeights.Name
	Weights string // the path that the backend returned; "" while it is being stored
	Seq     int    // of the request that stored it
}
