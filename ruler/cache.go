package ruler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// cache is a folder of answers. A nil cache has none.
type cache struct{ dir string }

// cached is the content of a file. The key is in it, so that a file in a wrong place is not believed.
type cached struct {
	Key    string `json:"key"`
	Answer string `json:"answer"`
}

// cacheKey is a digest of all that an answer depends on.
func cacheKey(j Judge, q *Question) (string, error) {
	parts := map[string]any{"judge": j.Name(), "messages": q.Messages, "chat": q.Chat}
	if m, ok := j.(modelJudge); ok {
		o := m.m.Options()
		parts["model"] = map[string]any{
			"project": o.Project, "lora": o.LoRA, "adapter": o.Adapter, "fork": o.Fork, "full": o.Full, "frozen": o.Frozen,
			"toolFormat": o.ToolFormat, "chat": o.Chat,
		}
	}
	content, err := encode(parts)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}

// file returns where an answer is stored, and its key. It is "" for what is not stored: answers of a rule, which can
// change without another name.
func (c *cache) file(j Judge, q *Question) (path, key string, err error) {
	if _, rule := j.(JudgeFunc); c == nil || rule {
		return "", "", nil
	}
	if key, err = cacheKey(j, q); err != nil {
		return "", "", err
	}
	return filepath.Join(c.dir, key[:2], key+".json"), key, nil
}

// read returns a stored answer. What is damaged is as if it were not there.
func (c *cache) read(j Judge, q *Question) (text string, ok bool) {
	path, key, err := c.file(j, q)
	if path == "" || err != nil {
		return "", false
	}
	content, err := os.ReadFile(path)
	var entry cached
	if err != nil || json.Unmarshal(content, &entry) != nil || entry.Key != key {
		return "", false
	}
	return entry.Answer, true
}

// write stores an answer, atomically.
func (c *cache) write(j Judge, q *Question, text string) error {
	path, key, err := c.file(j, q)
	if path == "" || err != nil {
		return err
	}
	content, err := encode(cached{key, text})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
