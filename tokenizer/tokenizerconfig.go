package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// DefaultTemplate is the name of the chat template that a model uses unless another one is named.
const DefaultTemplate = "default"

// chatConfig is what a model's files say about chat templates.
type chatConfig struct {
	templates map[string]string // Jinja sources by name
	special   map[string]string // the text of special tokens by names such as "bos_token"
}

// specialNames are the tokens of tokenizer_config.json that chat templates can name.
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// configure reads the fields of tokenizer_config.json that matter here. The others configure Python classes.
func (t *Tokenizer) configure(data []byte) error {
	var f map[string]json.RawMessage
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	t.chat.special = map[string]string{}
	for _, name := range specialNames {
		var token *configToken
		if err := json.Unmarshal([]byte(cmp.Or(string(f[name]), "null")), &token); err != nil {
			return fmt.Errorf("%s must be a string or an object with content", name)
		}
		if token != nil {
			t.chat.special[name] = token.content
		}
	}
	var err error
	if t.bos, err = t.configured("bos_token"); err != nil {
		return err
	}
	if t.eos, err = t.configured("eos_token"); err != nil {
		return err
	}
	t.chat.templates, err = chatTemplates(f["chat_template"])
	return err
}

// configToken is a token, written as a string or as an object with its content.
type configToken struct{ content string }

// UnmarshalJSON implements json.Unmarshaler.
func (c *configToken) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, &c.content)
	}
	var object struct{ Content string }
	err := json.Unmarshal(data, &object)
	c.content = object.Content
	return err
}

// SpecialTokens returns the texts of the special tokens that chat templates know by a name, such as "bos_token".
func (t *Tokenizer) SpecialTokens() map[string]string {
	out := map[string]string{}
	for name, ids := range map[string][]int32{"bos_token": t.bos, "eos_token": t.eos} {
		if len(ids) > 0 { // other files than tokenizer_config.json give only ids
			out[name] = t.texts[ids[0]]
		}
	}
	maps.Copy(out, t.chat.special)
	return out
}

// ChatTemplates returns the sources of the chat templates that came with the model, in Jinja, by their names.
func (t *Tokenizer) ChatTemplates() map[string]string { return maps.Clone(t.chat.templates) }

// configured returns the ids of a special token, none or one.
func (t *Tokenizer) configured(name string) ([]int32, error) {
	content, ok := t.chat.special[name]
	if !ok {
		return nil, nil
	}
	id, ok := t.ids[content]
	if !ok {
		return nil, fmt.Errorf("%s %q is not in the vocabulary", name, content)
	}
	return []int32{id}, nil
}

// chatTemplates reads a template, or a list of them with names.
func chatTemplates(raw json.RawMessage) (map[string]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		return map[string]string{DefaultTemplate: one}, nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("chat_template must be a string or a list of objects with name and template")
	}
	out := map[string]string{}
	for _, c := range list {
		out[c.Name] = c.Template
	}
	return out, nil
}

// loadTemplates reads the templates that are files of their own, which take precedence over those of
// tokenizer_config.json: chat_template.jinja, and others by name in additional_chat_templates. Some models that read
// images have theirs in chat_template.json alone.
func (c *chatConfig) loadTemplates(dir string) error {
	source, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	switch {
	case err == nil:
		c.templates = map[string]string{DefaultTemplate: string(source)}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("tokenizer: %w", err)
	case c.templates == nil:
		if c.templates, err = processorTemplate(filepath.Join(dir, "chat_template.json")); err != nil {
			return fmt.Errorf("tokenizer: chat_template.json: %w", err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "additional_chat_templates", "*.jinja"))
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("tokenizer: %w", err)
		}
		if c.templates == nil {
			c.templates = map[string]string{}
		}
		c.templates[strings.TrimSuffix(filepath.Base(file), ".jinja")] = string(source)
	}
	return nil
}

// processorTemplate reads the template of a file that processors of images have; nil where there is no such file.
func processorTemplate(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return nil, err
	}
	return chatTemplates(f.Template)
}
