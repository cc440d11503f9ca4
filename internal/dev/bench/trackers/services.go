package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// startServices starts the services as a process of their own.
func startServices() (url string, stop func(), err error) {
	own, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(own, "-serve")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	in, err := cmd.StdinPipe() // its end is that of the process
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	url, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(url), func() { _, _ = in.Close(), cmd.Wait() }, err
}

// serveAll is W&B, MLflow, OpenPipe and a collector of OpenTelemetry: it takes everything, and answers as much as each
// client reads.
func serveAll(out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	upload := map[string]any{"files": []any{map[string]string{"uploadUrl": url + "/upload"}}}
	answer, err := json.Marshal(map[string]any{
		"data":          map[string]any{"viewer": map[string]string{"entity": "team"}, "createRunFiles": upload},
		"experiment":    map[string]string{"experiment_id": "1"},
		"experiment_id": "1",
		"run":           map[string]any{"info": map[string]string{"run_id": "r"}},
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, url); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the measuring process ends
		os.Exit(0)
	}()
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			return // of OpenTelemetry: an empty message
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
}
