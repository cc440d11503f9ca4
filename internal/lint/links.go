package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	fencedBlock  = regexp.MustCompile("(?ms)^```.*?^```")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor     = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// checkLinks returns the relative links of Markdown files that name no file and no heading, and the pages of docs that
// docs/README.md does not list.
func checkLinks(files []source) []string {
	exists, anchors := map[string]bool{}, map[string]map[string]bool{}
	for _, file := range files {
		for name := file.path; name != "."; name = path.Dir(name) {
			exists[name] = true
		}
		if path.Ext(file.path) == ".md" {
			anchors[file.path] = anchorsOf(file.data)
		}
	}
	var problems []string
	listed := map[string]bool{}
	for _, file := range files {
		if anchors[file.path] == nil {
			continue
		}
		for _, link := range relativeLinks(file.data) {
			name, anchor, _ := strings.Cut(link, "#")
			target := file.path
			if name != "" {
				target = path.Join(path.Dir(file.path), name)
			}
			known := anchors[target]
			if !exists[target] || anchor != "" && known != nil && !known[anchor] {
				problems = append(problems, fmt.Sprintf("%s: the link to %s leads nowhere", file.path, link))
			}
			listed[target] = listed[target] || file.path == "docs/README.md"
		}
	}
	for _, file := range files {
		if path.Dir(file.path) == "docs" && path.Ext(file.path) == ".md" && path.Base(file.path) != "README.md" &&
			!listed[file.path] {
			problems = append(problems, file.path+" is not in docs/README.md")
		}
	}
	return problems
}

// relativeLinks returns the links to files of this repository.
func relativeLinks(markdown []byte) []string {
	var links []string
	for _, match := range markdownLink.FindAllSubmatch(fencedBlock.ReplaceAll(markdown, nil), -1) {
		if link := string(match[1]); !strings.Contains(link, ":") {
			links = append(links, link)
		}
	}
	return links
}

// anchorsOf returns the anchors of the headings, as GitHub makes them.
func anchorsOf(markdown []byte) map[string]bool {
	anchors := map[string]bool{}
	for _, match := range heading.FindAllSubmatch(fencedBlock.ReplaceAll(markdown, nil), -1) {
		text := noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(match[1]))), "")
		anchors[strings.ReplaceAll(text, " ", "-")] = true
	}
	return anchors
}
