package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server/child"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
)

// openLocal opens the backend of this process, with its runs in a folder of -dir.
func openLocal(ctx context.Context, folder string) (*local.Backend, error) {
	return local.Open(ctx, &local.Options{Dir: filepath.Join(*dir, folder), Context: *length, Slots: *groups * *size})
}

// childFlags are the flags of a child of this process, whose runs are in a folder of -dir.
func childFlags(folder string) []string {
	return []string{
		"-dir", filepath.Join(*dir, folder), "-model", *base, "-steps", strconv.Itoa(*steps),
		"-context", strconv.Itoa(*length), "-groups", strconv.Itoa(*groups), "-size", strconv.Itoa(*size),
		"-tokens", strconv.Itoa(*tokens),
	}
}

// startServer starts this program as a server.
func startServer(ctx context.Context, folder string) (*child.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.Start(ctx, &child.Options{
		Command: append([]string{self}, childFlags(folder)...), Stderr: os.Stderr,
	})
}

// connect makes a client of its own with a model.
func connect(ctx context.Context, s *child.Server, name string) (*art.Model, *client.Backend, error) {
	folder := cmp.Or(*tokenizer, *base)
	if folder == "tiny" {
		folder = filepath.Join("model", "tiny")
	}
	b, err := client.Open(ctx, &client.Options{
		BaseURL: s.URL, Key: s.Key, Tokenizer: folder, Dir: filepath.Join(*dir, name),
	})
	if err != nil {
		return nil, nil, err
	}
	m, err := register(ctx, b, name)
	return m, b, err
}

// serve is the server.
func serve(ctx context.Context) error {
	ctx = child.Parent(ctx, 10*time.Second)
	b, err := openLocal(ctx, "server")
	if err != nil {
		return err
	}
	t, err := tinker.New(b, &tinker.Options{Dir: filepath.Join(*dir, ".tinker"), Bases: []tinker.Base{{Name: *base}}})
	if err != nil {
		return err
	}
	h, err := t.Handler(&art.HandlerOptions{Keys: []string{os.Getenv(child.KeyVariable)}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = web.Close() // ends Serve
	}()
	if err := child.Ready(os.Stdout, "http://"+l.Addr().String(), []string{*base}); err != nil {
		return err
	}
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return errors.Join(t.Close(), b.Close())
}
