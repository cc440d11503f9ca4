package lint

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
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
	listed := map[string]bool{"docs/README.md": true}
	for _, file := range files {
		if anchors[file.path] == nil {
			continue
		}
		for _, link := range relativeLinks(file.data) {
			target, anchor := resolve(file.path, link)
			if known := anchors[target]; !exists[target] || anchor != "" && known != nil && !known[anchor] {
				problems = append(problems, fmt.Sprintf("%s: the link to %s leads nowhere", file.path, link))
			}
			listed[target] = listed[target] || file.path == "docs/README.md"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(anchors)) {
		if path.Dir(name) == "docs" && !listed[name] {
			problems = append(problems, name+" is not in docs/README.md")
		}
	}
	return problems
}

// resolve returns the file and the anchor that a link in a page names.
func resolve(page, link string) (target, anchor string) {
	name, anchor, _ := strings.Cut(link, "#")
	if name == "" {
		return page, anchor
	}
	return path.Join(path.Dir(page), name), anchor
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
