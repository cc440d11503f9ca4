// Package access is who may do what on a training server, and what it costs: keys with scopes, prices, and what each
// key has used. The routes of Tinker and of W&B Training share it.
//
// A key without limits may do all that its tenant may. A key with limits has scopes, projects or runs, and no route
// does for it what they do not cover: it answers status 403, and what is missing.
package access

// Scope is what a key may do.
type Scope string

// The scopes.
const (
	Sample   Scope = "sample"   // ask models for samples and replies
	Train    Scope = "train"    // create runs, train them, and save and load weights
	List     Scope = "list"     // read the lists of runs, checkpoints, sessions and events
	Download Scope = "download" // download weights
	Delete   Scope = "delete"   // delete runs and checkpoints, and let them expire
)

// Key is a secret with limits.
type Key struct {
	// Name tells keys apart in usage and errors. Required, and another one for each key of a tenant.
	Name string
	// Key is the secret that clients send. Required.
	Key string
	// Scopes are what it may do. Empty: everything.
	Scopes []Scope
	// Projects and Runs are what it may do that to, together. Empty: everything. A run is the id of a training run of
	// Tinker, or PROJECT/NAME of W&B Training. A key that has either does not sample from base models: they are no run.
	Projects, Runs []string
}

// Prices are amounts of money for a million tokens each, in any currency.
type Prices struct {
	Prompt, Sampled, Trained float64
}

// Usage is what was used.
type Usage struct {
	PromptTokens  int64   `json:"prompt_tokens"`  // read for samples and replies
	SampledTokens int64   `json:"sampled_tokens"` // written
	TrainedTokens int64   `json:"trained_tokens"` // read by training
	Seconds       float64 `json:"seconds"`        // of training
	Cost          float64 `json:"cost"`           // by the prices of the tenant
}

// Report is what a tenant has used, and what of it by each key with limits, by its name.
type Report struct {
	Usage
	Keys map[string]Usage `json:"keys,omitempty"`
}
