package basemodel

import (
	"fmt"
	"strings"
	"unicode"
)

// original names the checkpoint that a GGUF file was made from, by its metadata: ORG/NAME of the hub where that is
// known, else the name of the model; "" without one.
//
// general.base_model is what the checkpoint was trained from, unless it has the model's own name: then the file was
// made from a copy.
func original(metadata map[string]any) string {
	text := func(key string) string { s, _ := metadata[key].(string); return strings.TrimSpace(s) }
	for _, key := range []string{"source.huggingface.repository", "source.repo_url", "source.url", "repo_url", "url"} {
		if repo := repository(text("general." + key)); repo != "" {
			return repo
		}
	}
	name, parent := text("general.name"), "general.base_model.0."
	if count := fmt.Sprint(metadata["general.base_model.count"]); count == "1" && sameName(name, text(parent+"name")) {
		if repo := repository(text(parent + "repo_url")); repo != "" {
			return repo
		}
		if owner := text(parent + "organization"); owner != "" {
			return strings.ReplaceAll(owner+"/"+text(parent+"name"), " ", "-")
		}
	}
	if at := len(name) - len(" gguf"); at > 0 && strings.EqualFold(name[at:], " gguf") {
		name = name[:at]
	}
	return name
}

// repository returns ORG/NAME of a repository on the hub, by that or by its address; "" for others, and for those that
// have GGUF files and not the checkpoint.
func repository(address string) string {
	if path, ok := strings.CutPrefix(address, "https://huggingface.co/"); ok {
		address = path
	}
	owner, name, ok := strings.Cut(strings.TrimSuffix(address, "/"), "/")
	if !ok || owner == "" || name == "" || strings.ContainsAny(owner+name, "/: ") ||
		strings.HasSuffix(strings.ToLower(name), "gguf") {
		return ""
	}
	return owner + "/" + name
}

// sameName reports whether two names have the same letters and digits, and are not empty.
func sameName(a, b string) bool {
	plain := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
		return strings.TrimSuffix(s, "gguf")
	}
	return plain(a) != "" && plain(a) == plain(b)
}
