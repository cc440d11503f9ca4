package main

import (
	"fmt"
	"strings"
)

// xlaReport is what the doctor says of XLA.
type xlaReport struct {
	Plugins []xlaPlugin `json:"plugins"`
	Problem string      `json:"problem,omitempty"` // why there are none
}

// xlaPlugin is a plug-in that was found.
type xlaPlugin struct {
	Device   string   `json:"device"` // as local.Options names it
	Path     string   `json:"path"`   // "" when nothing was found, and the machine could use it
	API      string   `json:"pjrt_version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Devices  []string `json:"devices,omitempty"`
	Problem  string   `json:"problem,omitempty"` // why it cannot be used
}

func (p xlaPlugin) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s cannot be used: %s", p.Device, p.Problem)
	}
	if p.Problem != "" {
		return fmt.Sprintf("%s cannot be used: %s (%s)", p.Device, p.Problem, p.Path)
	}
	return fmt.Sprintf("%s, platform %s, PJRT %s, devices %s (%s)", p.Device, p.Platform, p.API,
		strings.Join(p.Devices, " "), p.Path)
}

// lines are the report for people, one for each plug-in.
func (r xlaReport) lines() []string {
	if len(r.Plugins) == 0 {
		return []string{r.Problem}
	}
	var lines []string
	for _, p := range r.Plugins {
		lines = append(lines, p.String())
	}
	return lines
}
