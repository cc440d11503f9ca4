package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// planted are texts with secrets, which have "S3cr3t" or one of the parts below in them. All are made up.
var planted = []string{
	"OPENAI_API_KEY=S3cr3t-a", "export HF_TOKEN='S3cr3t b c'", `DB_PASSWORD="S3cr3t d"`, "set SSH_KEY=S3cr3t", "--api-key S3cr3t-x",
	"--password=S3cr3t", "-token S3cr3t1", "password: S3cr3t", "db_pass: S3cr3t", "api_key : S3cr3t", "secret = S3cr3t",
	"Authorization: Bearer S3cr3t.abc", "authorization: Basic UzNjcjN0", "Authorization: Token S3cr3t", "Authorization: S3cr3t",
	`curl -H "Authorization: ApiKey S3cr3t" https://host`, "X-API-Key: S3cr3t", "x-goog-api-key: S3cr3t", "Proxy-Authorization: Basic eDpTM2NyM3Q=",
	"Cookie: a=1; session=S3cr3t", "Set-Cookie: id=S3cr3t; Path=/",
	"https://user:S3cr3t@host/x", "postgres://S3cr3t@host/db", "https://host/x?token=S3cr3t", "https://host/x?a=1&access_token=S3cr3t&b=2",
	"https://host/x?X-Amz-Signature=S3cr3t", "https://host/x?sig=S3cr3t#f", "https://host/x?api_key=S3cr3t", "wss://host/?key=S3cr3t",
	"sk-S3cr3tS3cr3tS3cr3t", "sk-proj-S3cr3t_S3cr3t-S3cr3t", "sk-ant-api03-S3cr3tS3cr3t", "hf_S3cr3tS3cr3tS3cr3t", "tml-S3cr3tS3cr3tS3cr3t",
	"ghp_S3cr3tS3cr3tS3cr3t00", "github_pat_S3cr3tS3cr3tS3cr3t", "glpat-S3cr3tS3cr3tS3cr3t", "gsk_S3cr3tS3cr3tS3cr3t", "AKIAS3CR3TS3CR3T0000",
	"AIzaS3cr3tS3cr3tS3cr3tS3cr3tS3cr3t00000", "xoxb-S3cr3t-S3cr3t-S3cr3t", "xapp-1-S3cr3t-S3cr3t", "ya29.S3cr3tS3cr3tS3cr3tS3cr3t",
	"key wJalrXUtnFEMI/K7MDENG/bPxRfiCYS3cr3t0000 wJalrXUtnFEMI/K7MDENG/bPxRfiCYS3cr3t0001", "aws_secret_access_key = S3cr3t/S3cr3t",
	"eyJhbGciOiJIUzI1NiJ9.eyJTM2NyM3QiOjF9.S3cr3tS3cr3t", "SG.S3cr3tS3cr3tS3cr3t.S3cr3tS3cr3tS3cr3t",
	"-----BEGIN RSA PRIVATE KEY-----\nS3cr3tS3cr3t\nS3cr3t==\n-----END RSA PRIVATE KEY-----",
	"-----BEGIN OPENSSH PRIVATE KEY-----\nS3cr3tS3cr3t", "-----BEGIN PRIVATE KEY-----\nS3cr3t\n-----END PRIVATE KEY-----",
	"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nS3cr3t\n-----END PGP PRIVATE KEY BLOCK-----",
	`{"key": "S3cr3t", "a": 1}`, `{"token":"S3cr3t"}`, `{"password": 53175317}`, `{"client_secret": "S3cr3t"}`, `{"apiKey":"S3cr3t with \"spaces\""}`,
	`{"credentials": {"user": "x", "value": "S3cr3t"}}`, `{"api_keys": ["S3cr3t", "S3cr3t"]}`, `{"headers": {"Authorization": ["S3cr3t"]}}`,
	`{"headers": [["X-Api-Key", "S3cr3t"]]}`, `{"headers": [{"name": "Cookie", "value": "S3cr3t"}]}`, `{'password': 'S3cr3t x'}`,
	`see {"password": "S3cr3t x", "b": 2}`, `{"arguments": "{\"api_key\": \"S3cr3t x\"}"}`, `call({\"token\": \"S3cr3t x\"})`,
	"<parameter=api_key>\nS3cr3t x\n</parameter>", `<parameter name="password">S3cr3t</parameter>`, "<secret>S3cr3t</secret>",
	"SLACK_WEBHOOK=https://hooks.slack.com/services/S3cr3t", "connectionString=Server=x;S3cr3t", "of the environment: UNGUESSABLE+/=1",
	`of the environment: UNGUESSABLE\u002b\/=1`, "of the environment: UNGUESSABLE%2B%2F%3D1", "of a URL: word-of-the-database",
}

// leaks are what is left of a secret.
var leaks = []string{"S3cr3t", "S3CR3T", "UzNjcjN0", "eDpTM2NyM3Q", "UNGUESSABLE", "word-of-the-database", "53175317"}

// TestReport_Secrets: no file of a bundle, and no name of one, has a planted secret, wherever it was planted.
func TestReport_Secrets(t *testing.T) {
	root := trainedRun(t)
	t.Setenv("MY_SERVICE_KEY", "UNGUESSABLE+/=1")
	t.Setenv("DATABASE", "postgres://me:word-of-the-database@host/db")
	dir := filepath.Join(root, "games", "models", "player")
	plant(t, root, dir)
	file := filepath.Join(t.TempDir(), "r.zip")
	wantOutput(t, "runs report player --trajectories --out "+file, file)
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	all := ""
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all += string(content)
		for line := range strings.Lines(f.Name + "\n" + string(content)) {
			for _, leak := range leaks {
				if strings.Contains(line, leak) {
					t.Errorf("%s: %s", f.Name, line)
				}
			}
		}
		if filepath.Ext(f.Name) == ".json" && !json.Valid(content) {
			t.Errorf("%s is no JSON any more", f.Name)
		}
	}
	for _, kept := range []string{`"reward"`, "what is harmless stays: 42 tokens, key points, a monkey", "train/planted"} {
		if !strings.Contains(all, kept) {
			t.Errorf("%q is lost", kept)
		}
	}
}

// plant puts secrets into a run: its history, a name of a file, and its trajectories, as texts, arguments and metadata.
func plant(t *testing.T, root, dir string) {
	t.Helper()
	var history []byte
	x := art.NewTrajectory(art.User("what is harmless stays: 42 tokens, key points, a monkey"))
	for i, text := range planted {
		quoted, _ := json.Marshal(text)
		history = fmt.Appendf(history, `{"step":3,"train/planted":%d,"note":%s}`+"\n", i, quoted)
		x.Messages = append(x.Messages, art.User(text), art.Message{
			Role: art.RoleAssistant, Content: text,
			ToolCalls: []art.ToolCall{{ID: fmt.Sprint(i), Name: "f", Arguments: `{"text":` + string(quoted) + `}`}},
		}, art.ToolResult(fmt.Sprint(i), text+"\n"+text))
		x.Metadata[fmt.Sprint("m", i)] = text
		x.Logs = append(x.Logs, text)
	}
	x.Metadata["api_key"], x.Metadata["token"] = "S3cr3t", "S3cr3t"
	run, err := runs.Open(root, "games", "player", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	err = run.WriteTrajectories("val", 3, []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{x}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "history.jsonl") // after the run was opened, which drops what is not of it
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	history = append(history, `{"step":4,"api_key":"S3cr3t`...)
	if err := os.WriteFile(file, append(old, history...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token=S3cr3t.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
