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
		// Is what the answers of a model depend on beside its name, its step and the question.
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

// caches tells whether answers of a judge are stored: not those of a rule, which can change without another name.
func (c *cache) caches(j Judge) bool {
	_, rule := j.(JudgeFunc)
	return c != nil && !rule
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key[:2], key+".json") }

// read returns a stored answer. What is damaged is as if it were not there.
func (c *cache) read(j Judge, q *Question) (text string, ok bool) {
	if !c.caches(j) {
		return "", false
	}
	key, err := cacheKey(j, q)
	if err != nil {
		return "", false
	}
	content, err := os.ReadFile(c.path(key))
	if err != nil {
		return "", false
	}
	var entry cached
	if json.Unmarshal(content, &entry) != nil || entry.Key != key {
		return "", false
	}
	return entry.Answer, true
}

// write stores an answer, atomically.
func (c *cache) write(j Judge, q *Question, text string) error {
	if !c.caches(j) {
		return nil
	}
	key, err := cacheKey(j, q)
	if err != nil {
		return err
	}
	content, err := encode(cached{key, text})
	if err != nil {
		return err
	}
	path := c.path(key)
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
