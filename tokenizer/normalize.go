package tokenizer

import (
	"encoding/json"
	"fmt"
)

// normalizer rewrites text before it is cut into words.
type normalizer func(string) string

func keep(s string) string { return s }

func parseNormalizer(raw json.RawMessage) (normalizer, error) {
	if isNull(raw) {
		return keep, nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	switch kind {
	case "NFC":
		var c struct {
			Type string `json:"type"`
		}
		return nfc, decodeStrict(raw, &c)
	case "Sequence":
		return parseNormalizers(raw)
	}
	return nil, fmt.Errorf("normalizer %q is not supported, only NFC and Sequence", kind)
}

func parseNormalizers(raw json.RawMessage) (normalizer, error) {
	var c struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := decodeStrict(raw, &c); err != nil {
		return nil, fmt.Errorf("normalizer Sequence: %w", err)
	}
	all := keep
	for _, r := range c.Normalizers {
		next, err := parseNormalizer(r)
		if err != nil {
			return nil, err
		}
		before := all
		all = func(s string) string { return next(before(s)) }
	}
	return all, nil
}
