package reward

import (
	"fmt"
	"strings"
)

// Tags returns 1 when text is what [Sections] accepts, else 0.
func Tags(text string, tags ...string) float64 {
	if _, err := Sections(text, tags...); err != nil {
		return 0
	}
	return 1
}

// Sections returns what stands between the tags <name> and </name> of each name. Text must consist of these sections,
// in this order, each exactly once and not blank, with nothing but white space around them; a tag may not occur
// within another section either. Otherwise the error says what is wrong.
func Sections(text string, tags ...string) ([]string, error) {
	rest := text
	var sections []string
	for _, tag := range tags {
		section, err := onlySection(text, tag)
		if err != nil {
			return nil, err
		}
		before, after, _ := strings.Cut(rest, "<"+tag+">"+section+"</"+tag+">")
		switch {
		case len(before) == len(rest):
			return nil, fmt.Errorf("<%s> is not in its order", tag)
		case strings.TrimSpace(before) != "":
			return nil, fmt.Errorf("text stands before <%s>", tag)
		case strings.TrimSpace(section) == "":
			return nil, fmt.Errorf("<%s> is blank", tag)
		}
		sections, rest = append(sections, section), after
	}
	if strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("text stands behind the last section")
	}
	return sections, nil
}

// onlySection returns what stands between the only <tag> and the only </tag> of text.
func onlySection(text, tag string) (string, error) {
	opening, closing := "<"+tag+">", "</"+tag+">"
	if n := strings.Count(text, opening); n != 1 {
		return "", fmt.Errorf("%s occurs %d times, want once", opening, n)
	}
	if n := strings.Count(text, closing); n != 1 {
		return "", fmt.Errorf("%s occurs %d times, want once", closing, n)
	}
	_, after, _ := strings.Cut(text, opening)
	section, _, ok := strings.Cut(after, closing)
	if !ok {
		return "", fmt.Errorf("%s stands before %s", closing, opening)
	}
	return section, nil
}

// Tag returns what stands between <name> and </name>, wherever they are in text, without white space around it. ok is
// false unless each of them occurs exactly once.
func Tag(text, name string) (content string, ok bool) {
	content, err := onlySection(text, name)
	return strings.TrimSpace(content), err == nil
}
