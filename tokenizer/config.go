package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// configure reads what is used of tokenizer_config.json. Its other fields steer Python classes.
func (t *Tokenizer) configure(data []byte) error {
	var f struct {
		BOS          *configToken    `json:"bos_token"`
		EOS          *configToken    `json:"eos_token"`
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	var err error
	if t.bos, err = t.configured("bos_token", f.BOS); err != nil {
		return err
	}
	if t.eos, err = t.configured("eos_token", f.EOS); err != nil {
		return err
	}
	t.chatTemplate, err = chatTemplate(f.ChatTemplate)
	return err
}

// configToken is a token, written as a string or as an object with its content.
type configToken struct{ content string }

func (c *configToken) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, &c.content)
	}
	var object struct {
		Content string `json:"content"`
	}
	err := json.Unmarshal(data, &object)
	c.content = object.Content
	return err
}

func (t *Tokenizer) configured(field string, token *configToken) ([]int32, error) {
	if token == nil {
		return nil, nil
	}
	id, ok := t.ids[token.content]
	if !ok {
		return nil, fmt.Errorf("%s %q is not in the vocabulary", field, token.content)
	}
	return []int32{id}, nil
}

// chatTemplate reads a template, or the one named "default" of a list.
func chatTemplate(raw json.RawMessage) (string, error) {
	if isNull(raw) {
		return "", nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		return one, nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", errors.New("chat_template must be a string or a list of objects with name and template")
	}
	for _, c := range list {
		if c.Name == "default" {
			return c.Template, nil
		}
	}
	return "", errors.New(`chat_template is a list without a template named "default"`)
}
