package main

import (
	"io"
	"net/http"
	"sync"

	"github.com/goart-dev/art/examples/frameworks"
)

// maxArgument is the most bytes of an argument of a tool.
const maxArgument = 1 << 16

// desks serves the desks of rollouts to the worker: POST /desk/ROLLOUT/TOOL with the argument as the body.
type desks struct{ open sync.Map }

func (d *desks) add(id string, desk *frameworks.Desk) { d.open.Store(id, desk) }

func (d *desks) remove(id string) { d.open.Delete(id) }

// handler answers requests that have the key.
func (d *desks) handler(key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		desk, ok := d.open.Load(r.PathValue("id"))
		if r.Header.Get("Authorization") != "Bearer "+key || !ok {
			http.Error(w, "there is no such desk", http.StatusNotFound)
			return
		}
		argument, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgument))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text, err := desk.(*frameworks.Desk).Call(r.PathValue("tool"), string(argument))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, text) // the worker is gone: its run fails
	})
}
