package main

import (
	"fmt"
	"strings"
)

// xlaReport describes XLA for doctor.
type xlaReport struct {
	Plugins []xlaPlugin `json:"plugins"`
	Problem string      `json:"problem,omitempty"` // why there are none
}

// xlaPlugin is a plug-in that was found.
type xlaPlugin struct {
	Device   string   `json:"device"` // as local.Options names it
	Path     string   `json:"path"`   // "" when the machine could use the plug-in and it was not found
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

// lines are the report in text, one for each plug-in.
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
